package cc

import "time"

// window is a sliding count: that of the running window, and of the one before by the share of it that still counts.
type window struct {
	length            time.Duration
	index             int64
	current, previous float64
}

// advance moves to the window that holds now. Other lengths keep the rate.
func (w *window) advance(now, length time.Duration) {
	if w.length != length {
		rate := 0.0
		if w.length > 0 {
			w.advance(now, w.length)
			rate = w.rate(now)
		}
		w.length, w.index = length, int64(now/length)
		w.previous = rate * length.Seconds()
		w.current = rate * (now % length).Seconds()
		return
	}
	switch index := int64(now / length); index - w.index {
	case 0:
	case 1:
		w.previous, w.current, w.index = w.current, 0, index
	default:
		w.previous, w.current, w.index = 0, 0, index
	}
}

// estimate is the number of requests within one length before now, which lies in the window advanced to.
func (w *window) estimate(now time.Duration) float64 {
	return w.previous*(1-float64(now%w.length)/float64(w.length)) + w.current
}

// rate is in requests a second.
func (w *window) rate(now time.Duration) float64 { return w.estimate(now) / w.length.Seconds() }

func (w *window) empty() bool { return w.current == 0 && w.previous == 0 }
