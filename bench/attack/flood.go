package main

import (
	"context"
	"sync"
	"time"
)

const (
	floodAgent = "flood of the attack kit"
	paceEvery  = 5 * time.Millisecond
)

// flood keeps the shape's rate until its time is over. What the connections cannot take on is left out and counted: a
// slow target is not asked more later.
func flood(ctx context.Context, o *options, tally *tally) {
	work := make(chan struct{}, 4*o.connections)
	var group sync.WaitGroup
	for range o.connections {
		group.Go(func() {
			l := line{o: o}
			defer l.close()
			for range work {
				client, path := o.shape.request(o)
				a, err := l.send(ctx, message{method: "GET", path: path, agent: floodAgent, client: client})
				if ctx.Err() != nil {
					return
				}
				tally.flood(a, err)
			}
		})
	}
	start, due, sent := time.Now(), 0.0, 0.0
	whole := time.Duration(o.seconds) * time.Second
	end := start.Add(whole)
	ticker := time.NewTicker(paceEvery)
	defer ticker.Stop()
	last := start
	for now := start; now.Before(end); {
		select {
		case <-ctx.Done():
			close(work)
			group.Wait()
			return
		case now = <-ticker.C:
		}
		if now.After(end) {
			now = end
		}
		due += now.Sub(last).Seconds() * float64(o.rate) * o.shape.share(now.Sub(start), whole)
		last = now
		for ; sent+1 <= due; sent++ {
			select {
			case work <- struct{}{}:
			default:
				tally.skipped()
			}
		}
	}
	close(work)
	group.Wait()
}
