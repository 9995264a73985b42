package challenge

import (
	"sync/atomic"
	"time"
)

const (
	captchaRing = 4096
	// How often one image is shown.
	captchaUses = 8
	// An image is not shown after this time, and the ring is given up when nobody asked for one as long.
	captchaAge = 10 * time.Minute
	// The worker rests nine times as long as it worked, so it takes a tenth of a core at most.
	captchaRest = 9
	captchaWork = 2 * time.Millisecond
	// Slots tried for an image before the high proof of work takes its place.
	captchaTries = 16
)

// captchaPool holds images drawn ahead of need, so that a flood of visitors never waits for a drawing and drawing never
// takes more than its share of the machine.
type captchaPool struct {
	now   func() time.Time
	slots [captchaRing]atomic.Pointer[pooledImage]
	next  atomic.Uint32
	// Slots the worker has filled at least once; the others are not worth a look.
	filled  atomic.Uint32
	running atomic.Bool
	// When an image was last asked for, Unix seconds.
	asked atomic.Int64
}

type pooledImage struct {
	captchaImage
	drawn time.Time
	uses  atomic.Int32
}

// take returns an image, or nil when all have been shown often enough. The first one asked for starts the worker and is
// drawn at once.
func (p *captchaPool) take() *captchaImage {
	now := p.now()
	p.asked.Store(now.Unix())
	if !p.running.Load() && p.running.CompareAndSwap(false, true) {
		a := newArtist()
		p.put(0, a, now)
		p.filled.Store(1)
		go p.work(a)
	}
	filled := p.filled.Load()
	if filled == 0 {
		return nil
	}
	for range min(captchaTries, filled) {
		at := &p.slots[p.next.Add(1)%filled]
		image := at.Load()
		if image == nil {
			continue
		}
		if now.Sub(image.drawn) > captchaAge || image.uses.Add(1) > captchaUses {
			at.CompareAndSwap(image, nil)
			continue
		}
		return &image.captchaImage
	}
	return nil
}

func (p *captchaPool) put(slot uint32, a *artist, now time.Time) {
	p.slots[slot].Store(&pooledImage{captchaImage: *a.draw(), drawn: now})
}

// work fills the ring and keeps it full, until nobody asks any more.
func (p *captchaPool) work(a *artist) {
	slot := uint32(1)
	for idle := 0; ; {
		began := time.Now()
		for time.Since(began) < captchaWork && idle < captchaRing {
			now := p.now()
			if image := p.slots[slot].Load(); image == nil || now.Sub(image.drawn) > captchaAge {
				p.put(slot, a, now)
				idle = 0
			} else {
				idle++
			}
			p.filled.Store(max(p.filled.Load(), slot+1))
			slot = (slot + 1) % captchaRing
		}
		rest := captchaRest * time.Since(began)
		if idle >= captchaRing {
			// Full: look again in a while.
			idle, rest = 0, max(rest, 100*time.Millisecond)
			if p.now().Unix()-p.asked.Load() > int64(captchaAge/time.Second) {
				break
			}
		}
		time.Sleep(rest)
	}
	p.filled.Store(0)
	for i := range p.slots {
		p.slots[i].Store(nil)
	}
	p.running.Store(false)
}
