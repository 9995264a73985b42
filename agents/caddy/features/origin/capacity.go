package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// capacity bounds the connections that are in use to each origin: one that hangs holds no more of the node than its share.
type capacity struct {
	// The most to one origin; 0 for any number.
	most   int
	shards [idleShards]capacityShard

	inUse, waiting atomic.Int64
	refused        atomic.Uint64
}

type capacityShard struct {
	mu    sync.Mutex
	inUse map[dialKey]*places
	spare []*places
}

// maxSpare is how many places of origins without a connection are kept for the next ones.
const maxSpare = 64

// places are those of one origin, under the lock of its shard.
type places struct {
	shard *capacityShard
	key   dialKey
	taken int
	// Requests that wait for a place, in their order.
	queue []chan struct{}
}

// errFull says that as many connections to the origin are in use as may be.
var errFull = fail(failFull, errors.New("too many connections are in use"))

// enter takes a place, and waits for one as long as it may. Whoever has one leaves.
func (c *capacity) enter(ctx context.Context, o *origin, wait time.Duration) (*places, error) {
	if c.most == 0 {
		return nil, nil
	}
	s := &c.shards[o.shard]
	s.mu.Lock()
	p := s.inUse[o.dial]
	if p == nil {
		p = s.begin(o.dial)
	}
	if p.taken < c.most {
		p.taken++
		s.mu.Unlock()
		c.inUse.Add(1)
		return p, nil
	}
	if wait <= 0 {
		s.mu.Unlock()
		return nil, errFull
	}
	turn := make(chan struct{})
	p.queue = append(p.queue, turn)
	s.mu.Unlock()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return p, nil
	case <-timer.C:
		err = errFull
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	at := slices.Index(p.queue, turn)
	if at >= 0 {
		p.queue = slices.Delete(p.queue, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 {
		// The place came at the same moment.
		return p, nil
	}
	if err == errFull {
		c.refused.Add(1)
	}
	return nil, err
}

// leave gives a place back, to whom waits for longest.
func (c *capacity) leave(p *places) {
	if p == nil {
		return
	}
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.queue) > 0 {
		close(p.queue[0])
		p.queue = slices.Delete(p.queue, 0, 1)
		return
	}
	c.inUse.Add(-1)
	if p.taken--; p.taken == 0 {
		delete(s.inUse, p.key)
		if len(s.spare) < maxSpare {
			s.spare = append(s.spare, p)
		}
	}
}

func (s *capacityShard) begin(key dialKey) *places {
	if s.inUse == nil {
		s.inUse = map[dialKey]*places{}
	}
	var p *places
	if last := len(s.spare) - 1; last >= 0 {
		p, s.spare = s.spare[last], s.spare[:last]
	} else {
		p = &places{shard: s}
	}
	p.key = key
	s.inUse[key] = p
	return p
}

func (c *capacity) writeMetrics(w io.Writer) {
	fmt.Fprintf(w, "# HELP svc_edge_origin_connections Connections to origins in use.\n# TYPE svc_edge_origin_connections gauge\nsvc_edge_origin_connections %d\n", c.inUse.Load())
	fmt.Fprintf(w, "# HELP svc_edge_origin_connections_waiting Requests that wait until a connection to their origin is free.\n# TYPE svc_edge_origin_connections_waiting gauge\nsvc_edge_origin_connections_waiting %d\n", c.waiting.Load())
	fmt.Fprintf(w, "# HELP svc_edge_origin_connections_refused_total Requests that waited in vain for a connection to their origin.\n# TYPE svc_edge_origin_connections_refused_total counter\nsvc_edge_origin_connections_refused_total %d\n", c.refused.Load())
}
