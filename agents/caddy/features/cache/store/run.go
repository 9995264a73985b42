package store

import "time"

const (
	// How often the log is flushed, and other processes are looked for.
	flushEvery = time.Second
	lookEvery  = 250 * time.Millisecond
	diskEvery  = 5 * time.Second
	// How often inactive objects leave.
	inactiveEvery = time.Hour
	// How long a file stays open that nobody uses, or up to twice as long.
	openFor = 30 * time.Second
	// A checkpoint is written once the log has so many records, or half as many as there are objects.
	checkpointAfter = 1 << 16
)

// Run takes the zone as soon as no other process has it, and looks after it until stop is closed.
func (s *Store) Run(stop <-chan struct{}) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	defer s.yield()
	var flushed, disk, inactive, unused time.Time
	scrubs := false
	for {
		now := time.Now()
		if now.Sub(unused) >= openFor {
			s.files.closeUnused()
			unused = now
		}
		switch {
		case !s.owns():
			if ok, _ := s.lock.take(); ok {
				first, err := s.begin()
				if err != nil {
					s.lock.release()
					break
				}
				s.lookAtDisk()
				s.sweeping = make(chan struct{})
				go func() { defer close(s.sweeping); s.sweep(first, stop) }()
				if inactive, disk = now, now; !scrubs {
					scrubs = true
					go s.scrub(stop)
				}
			}
		case s.lock.wanted():
			s.yield()
			s.lock.gave = true
		default:
			if now.Sub(flushed) >= flushEvery {
				s.flush()
				flushed = now
			}
			if now.Sub(disk) >= diskEvery || s.room.Load() < 0 {
				s.lookAtDisk()
				disk = now
			}
			if now.Sub(inactive) >= inactiveEvery {
				s.removeInactive()
				inactive = now
			}
			s.evictAll()
		}
		select {
		case <-stop:
			return
		case <-look.C:
		case <-s.evict:
		}
	}
}

func (s *Store) flush() {
	if s.log.flush() != nil {
		s.counts.WriteErrors.Add(1)
	}
	if n := s.log.length(); n > checkpointAfter && n > s.index.len()/2 {
		if s.log.checkpoint(&s.index) != nil {
			s.counts.WriteErrors.Add(1)
		}
	}
}

// yield ends all writing to the zone, and lets another process have it.
func (s *Store) yield() {
	if !s.owned.Swap(false) {
		return
	}
	s.touched.pause()
	for s.writing.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	if s.log.checkpoint(&s.index) != nil {
		s.counts.WriteErrors.Add(1)
	}
	s.log.close()
	s.lock.release()
}

// Ready reports whether this process stores.
func (s *Store) Ready() bool { return s.owns() }
