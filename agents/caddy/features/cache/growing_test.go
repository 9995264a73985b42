package cache

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge.svc/caddy/features/cache/store"
)

// body is a sink that takes bytes as fast as it is let.
type body struct {
	bytes.Buffer
	turns chan struct{}
}

func (b *body) Write(p []byte) error {
	if b.turns != nil {
		<-b.turns
	}
	_, _ = b.Buffer.Write(p)
	return nil
}

func (b *body) Flush() error { return nil }

// writer begins a response in a zone, whose disk takes nothing where full is set.
func writer(t *testing.T, full bool) *store.Writer {
	t.Helper()
	dir := t.TempDir()
	if full {
		// Where folders are to be, files are.
		for i := range 4096 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03x", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := store.New(store.Options{Dir: dir})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { s.Run(stop); close(ended) }()
	t.Cleanup(func() { close(stop); <-ended })
	for !s.Ready() {
		time.Sleep(time.Millisecond)
	}
	return s.Create()
}

func TestClientsGetTheWholeResponseWhereTheDiskTakesNone(t *testing.T) {
	g := newGrowing(writer(t, true), -1, func() {})
	want := bytes.Repeat([]byte("0123456789"), 500_000)
	slow := &body{turns: make(chan struct{})}
	fast := &body{}
	ends := make(chan error, 2)
	for _, b := range []*body{slow, fast} {
		r := g.read(0, -1)
		go func() { ends <- r.CopyTo(b); r.Close() }()
	}
	g.settle(false)
	go func() {
		for i := 0; i < len(want); i += 50_000 {
			if err := g.Write(want[i : i+50_000]); err != nil {
				t.Error(err)
				break
			}
		}
		g.end(nil)
	}()
	for done := 0; done < 2; {
		select {
		case slow.turns <- struct{}{}:
		case err := <-ends:
			if done++; err != nil {
				t.Error(err)
			}
		}
	}
	g.finish()
	if !bytes.Equal(slow.Bytes(), want) || !bytes.Equal(fast.Bytes(), want) {
		t.Errorf("%d and %d bytes of %d", slow.Len(), fast.Len(), len(want))
	}
	if len(g.tail) > maxBehind+50_000 {
		t.Errorf("%d bytes were kept", len(g.tail))
	}
}

func TestAnAbandonedFillGoesOnIfLittleIsLeft(t *testing.T) {
	for _, c := range []struct {
		left   int64
		goesOn bool
	}{{maxAbandoned, true}, {maxAbandoned + 1, false}} {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGrowing(writer(t, false), 1000+c.left, cancel)
		r := g.read(0, -1)
		if err := g.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		g.settle(false)
		r.Close()
		if goesOn := ctx.Err() == nil && g.Write([]byte("x")) == nil; goesOn != c.goesOn {
			t.Errorf("with %d bytes left: %v", c.left, goesOn)
		}
		g.end(errAbandoned)
		g.finish()
		cancel()
	}
}

func TestAResponseShorterThanItsLengthIsAnError(t *testing.T) {
	g := newGrowing(writer(t, false), 10, func() {})
	r := g.read(0, 10)
	g.settle(false)
	_ = g.Write([]byte("short"))
	g.end(nil)
	b := &body{}
	if err := r.CopyTo(b); err == nil || b.String() != "short" {
		t.Error(err, b.String())
	}
	r.Close()
	g.finish()
}
