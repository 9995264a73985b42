package purgemethod

import (
	"context"
	"sync"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// Longest wait for the agent, which waits for the console.
	longestWait = 35 * time.Second
	// Requests that wait at a time.
	maxWaiting = 256
)

// desk hands purges to the agent and waits for what becomes of them.
type desk struct {
	wait time.Duration

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *nodev1.SubmitPurgeResponse
	// Where the agent takes purges from; nil while it does not.
	taken *taker
}

// taker is a stream of the agent.
type taker struct {
	purges chan *edgev1.PurgeRequest
	// Closed by the next one.
	over chan struct{}
}

func newDesk() *desk {
	return &desk{wait: longestWait, waiting: map[uint64]chan *nodev1.SubmitPurgeResponse{}}
}

// submit returns what became of a purge, nil where nobody can say.
func (d *desk) submit(ctx context.Context, siteID, url string) *nodev1.SubmitPurgeResponse {
	d.mu.Lock()
	if d.taken == nil || len(d.waiting) >= maxWaiting {
		d.mu.Unlock()
		return nil
	}
	d.last++
	id, answer := d.last, make(chan *nodev1.SubmitPurgeResponse, 1)
	select {
	case d.taken.purges <- &edgev1.PurgeRequest{Id: id, Purge: &nodev1.SubmitPurgeRequest{SiteId: siteID, Url: url}}:
	default:
		d.mu.Unlock()
		return nil
	}
	d.waiting[id] = answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, id)
		d.mu.Unlock()
	}()
	timer := time.NewTimer(d.wait)
	defer timer.Stop()
	select {
	case a := <-answer:
		return a
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// answer says what became of a purge.
func (d *desk) answer(id uint64, a *nodev1.SubmitPurgeResponse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answer, waits := d.waiting[id]; waits {
		delete(d.waiting, id)
		answer <- a
	}
}

// watch gives the agent the purges, until the stream ends or another begins. What waits for an agent that is gone is answered.
func (d *desk) watch(ctx context.Context, send func(*edgev1.PurgeRequest) error) error {
	t := &taker{make(chan *edgev1.PurgeRequest, maxWaiting), make(chan struct{})}
	d.mu.Lock()
	if d.taken != nil {
		close(d.taken.over)
		d.dismiss()
	}
	d.taken = t
	d.mu.Unlock()
	defer d.leave(t)
	for {
		select {
		case purge := <-t.purges:
			if err := send(purge); err != nil {
				return err
			}
		case <-t.over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave ends a stream.
func (d *desk) leave(t *taker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken != t {
		return
	}
	d.taken = nil
	d.dismiss()
}

// dismiss ends the wait for a stream that is over.
func (d *desk) dismiss() {
	for id, answer := range d.waiting {
		delete(d.waiting, id)
		answer <- nil
	}
}
