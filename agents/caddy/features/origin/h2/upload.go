package h2

import (
	"slices"
	"time"
)

// allowed is how much of n bytes may be sent now, under the lock.
func (s *Stream) allowed(n int) int {
	c := s.conn
	switch {
	case s.send <= 0, c.send <= 0, len(c.out) > maxOut:
		return 0
	case c.turn != s && (c.turn != nil || len(c.queue) > 0):
		// Others wait for longer.
		return 0
	}
	return int(min(int64(n), s.send, c.send, int64(c.maxFrame)))
}

// append appends a frame of the body, under the lock.
func (s *Stream) append(p []byte, end bool) {
	c := s.conn
	flags := byte(0)
	if end {
		flags = flagEndStream
	}
	c.out = append(appendHead(c.out, len(p), frameData, flags, s.id), p...)
	s.send -= int64(len(p))
	c.send -= int64(len(p))
	c.health.waste = 0
	if end {
		s.sentAll()
	}
	s.leave()
	c.signal()
}

// sentAll notes that the request was sent whole, under the lock.
func (s *Stream) sentAll() {
	if s.sentEnd = true; s.ended {
		s.remove()
	}
	// The time of the origin begins.
	wake(s.came)
}

// leave gives up the turn, or the place among those who wait for theirs, under the lock.
func (s *Stream) leave() {
	c := s.conn
	if c.turn == s {
		c.turn = nil
		c.grant()
		return
	}
	if i := slices.Index(c.queue, s); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
}

// queueUp waits for the connection in the order of streams, under the lock.
func (s *Stream) queueUp() {
	c := s.conn
	switch {
	case c.turn == s:
		// Others took the room before it could.
		c.turn = nil
		c.queue = slices.Insert(c.queue, 0, s)
	case !slices.Contains(c.queue, s):
		c.queue = append(c.queue, s)
	}
	c.grant()
}

// Write sends bytes of the body, the last ones where end is set. It waits as long as the origin takes something within each
// pause, and fails with ErrSilent then. Fails with ErrStopped where the origin takes no more, and else as the stream did.
func (s *Stream) Write(p []byte, end bool, pause time.Duration) error {
	c := s.conn
	timer := time.NewTimer(pause)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		if s.stopped != nil {
			return s.stopped
		}
		if n := s.allowed(len(p)); n > 0 {
			s.append(p[:n], end && n == len(p))
			p = p[n:]
			timer.Reset(pause)
			continue
		}
		if s.send > 0 {
			s.queueUp()
		} else {
			s.leave()
		}
		c.mu.Unlock()
		late := false
		select {
		case <-s.sends:
		case <-timer.C:
			late = true
		}
		c.mu.Lock()
		if late && s.stopped == nil && s.allowed(len(p)) == 0 {
			s.leave()
			return ErrSilent
		}
	}
	return nil
}

// End ends the body with trailers, a header block that may be empty.
func (s *Stream) End(trailers []byte) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stopped != nil {
		return s.stopped
	}
	if len(trailers) > 0 {
		c.out = appendBlock(c.out, s.id, nil, trailers, true, c.maxFrame)
	} else {
		c.out = appendHead(c.out, 0, frameData, flagEndStream, s.id)
	}
	s.sentAll()
	c.signal()
	return nil
}
