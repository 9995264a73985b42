package store

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
)

// ErrSlow says that the disk did not do something in time.
var ErrSlow = errors.New("the disk does not respond in time")

const (
	// How much is asked of a disk at once, each for reading and for writing.
	atOnce = 64
	// Once so much is late, nothing more is asked until some of it is done.
	mostLate    = 4
	diskTimeout = 5 * time.Second
)

// guard keeps requests from waiting for a disk that hangs.
type guard struct {
	tokens  chan struct{}
	timeout time.Duration
	late    atomic.Int32
}

func newGuard(timeout time.Duration) *guard {
	if timeout == 0 {
		timeout = diskTimeout
	}
	return &guard{tokens: make(chan struct{}, atOnce), timeout: timeout}
}

type outcome[T any] struct {
	value T
	err   error
}

// within does something in a goroutine of its own, and waits for it for a bounded time. After ErrSlow it may go on: what it
// reads and writes belongs to it. Where it succeeds then, undo is called.
func within[T any](g *guard, do func() (T, error), undo func(T)) (value T, err error) {
	if g.late.Load() >= mostLate {
		return value, ErrSlow
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	select {
	case g.tokens <- struct{}{}:
	case <-timer.C:
		return value, ErrSlow
	}
	done := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			if p := recover(); p != nil {
				exchange.Panicked("using the disk of the cache", p)
				o.err = fmt.Errorf("%w: %v", errNotOurs, p)
			}
			<-g.tokens
			done <- o
		}()
		o.value, o.err = do()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
	}
	g.late.Add(1)
	go func() {
		o := <-done
		g.late.Add(-1)
		if o.err == nil && undo != nil {
			undo(o.value)
		}
	}()
	return value, ErrSlow
}

// attempt is within for what has no value.
func (g *guard) attempt(do func() error, undo func()) error {
	_, err := within(g, func() (struct{}, error) { return struct{}{}, do() }, func(struct{}) {
		if undo != nil {
			undo()
		}
	})
	return err
}
