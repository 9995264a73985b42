package store

import "time"

const (
	// How much is read a second to check stored responses, in bytes; a file counts as at least one chunk.
	scrubRate = 8 << 20
	// How long there is between two times that all are checked.
	scrubEvery = 24 * time.Hour
)

// pace limits what is read, and takes bytes as a sink that nobody waits for.
type pace struct {
	rate int64
	stop <-chan struct{}
}

func (p *pace) spend(n int64) error {
	if p.rate == 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(n) * time.Second / time.Duration(p.rate))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.stop:
		return errEnded
	}
}

func (p *pace) Write(b []byte) error { return p.spend(int64(len(b))) }
func (p *pace) Flush() error         { return nil }

// scrub checks all stored responses, again and again. Those that are damaged are deleted before a client asks for them.
func (s *Store) scrub(stop <-chan struct{}) {
	for {
		if s.scrubOnce(&pace{scrubRate, stop}) != nil {
			return
		}
		timer := time.NewTimer(scrubEvery)
		select {
		case <-timer.C:
		case <-stop:
			timer.Stop()
			return
		}
	}
}

func (s *Store) scrubOnce(p *pace) (ended error) {
	s.index.each(func(entries []entry) bool {
		for i := range entries {
			if !s.owns() {
				return false
			}
			s.check(entries[i], p)
			if ended = p.spend(chunk); ended != nil {
				return false
			}
		}
		return true
	})
	return ended
}

// check reads a stored response. One that is damaged is deleted, and told of.
func (s *Store) check(e entry, p *pace) {
	o, err := within(s.reads, func() (*Object, error) { return s.load(e) }, nil)
	if err != nil {
		s.remove(e, err)
		return
	}
	s.counts.Checked.Add(1)
	if o.body != nil || o.Length == 0 {
		return
	}
	o.checked = false
	b, err := o.Open(0)
	if err != nil {
		return
	}
	defer b.Close()
	_ = b.CopyTo(p, 0, o.Length)
}
