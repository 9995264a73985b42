package exchange

import (
	"errors"
	"net/http/httptest"
	"testing"
)

// movable is a source whose first write can be taken over, and whose rest comes in another goroutine.
type movable struct {
	first, rest string
	// Closed when another goroutine has taken over.
	taken chan struct{}
	// Closed when it is to end; nil where nobody waits for that.
	interrupted chan struct{}
}

func newMovable() *movable {
	return &movable{first: "first, ", rest: "rest", taken: make(chan struct{})}
}

func (m *movable) CopyTo(sink Sink) error {
	if err := sink.Write([]byte(m.first)); err != nil {
		return err
	}
	return sink.Write([]byte(m.rest))
}

func (m *movable) Resume(sink Sink) error {
	close(m.taken)
	if m.interrupted != nil {
		<-m.interrupted
		return errors.New("interrupted")
	}
	return sink.Write([]byte(m.rest))
}

func (m *movable) MayMove() bool { return true }

func (m *movable) Interrupt() {
	if m.interrupted != nil {
		close(m.interrupted)
	}
}

func (m *movable) Close() {}

// slowClient waits in its first write until another goroutine has taken over.
type slowClient struct {
	gather
	source *movable
	fails  error
	panics bool
}

func (c *slowClient) Write(p []byte) error {
	<-c.source.taken
	switch {
	case c.panics:
		panic("in a write")
	case c.fails != nil:
		return c.fails
	}
	return c.gather.Write(p)
}

// The rest of a body that another goroutine reads follows what the client got, and a client that is gone ends the reading,
// also by a panic.
func TestAnotherGoroutineReadsAheadOfASlowClient(t *testing.T) {
	x := &Exchange{}
	x.Begin(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	m := newMovable()
	client := &slowClient{source: m}
	if err := x.copyBehind(m, client); err != nil || client.String() != "first, rest" {
		t.Errorf("%q %v", &client.Buffer, err)
	}
	m = newMovable()
	m.interrupted = make(chan struct{})
	fails := errors.New("gone")
	if err := x.copyBehind(m, &slowClient{source: m, fails: fails}); !errors.Is(err, fails) {
		t.Errorf("a client that is gone: %v", err)
	}
	m = newMovable()
	if err := x.copyBehind(m, &slowClient{source: m, fails: fails}); !errors.Is(err, fails) {
		t.Errorf("a client that is gone when all was read: %v", err)
	}
	m = newMovable()
	m.interrupted = make(chan struct{})
	func() {
		defer func() { _ = recover() }()
		_ = x.copyBehind(m, &slowClient{source: m, panics: true})
		t.Error("no panic")
	}()
	<-m.interrupted
}

func BenchmarkPassOn(b *testing.B) {
	for name, direct := range map[string]bool{"direct": true, "movable": false} {
		b.Run(name, func(b *testing.B) {
			x := &Exchange{}
			x.Begin(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			source := newMovable()
			b.ReportAllocs()
			for b.Loop() {
				if direct {
					_ = source.CopyTo(nowhere{})
				} else {
					_ = x.copyBehind(source, nowhere{})
				}
			}
		})
	}
}

type nowhere struct{}

func (nowhere) Write([]byte) error { return nil }

func (nowhere) Flush() error { return nil }
