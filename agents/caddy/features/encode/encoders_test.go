package encode

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"edge.svc/caddy/exchange"
)

// pieces is a body that comes in pieces; nil is a pause, before which it is flushed.
type pieces struct {
	list   [][]byte
	fails  error
	closed int
}

func (p *pieces) CopyTo(sink exchange.Sink) error {
	for _, piece := range p.list {
		if piece == nil {
			if err := sink.Flush(); err != nil {
				return err
			}
			continue
		}
		if err := sink.Write(piece); err != nil {
			return err
		}
	}
	return p.fails
}

func (p *pieces) Close() { p.closed++ }

// collector is a client.
type collector struct {
	bytes.Buffer
	flushes int
	// Fails the write after so many.
	fails  int
	writes int
}

var errGone = errors.New("the client is gone")

func (c *collector) Write(p []byte) error {
	if c.writes++; c.fails > 0 && c.writes >= c.fails {
		return errGone
	}
	_, err := c.Buffer.Write(p)
	return err
}

func (c *collector) Flush() error { c.flushes++; return nil }

func exchangeOf(major int) *exchange.Exchange {
	x := &exchange.Exchange{}
	x.In.Major = major
	return x
}

// decoded is what a decoder of the coding makes of it; the stories of the whole system have those of other programs.
func decoded(t *testing.T, c exchange.Coding, from []byte) []byte {
	t.Helper()
	var r io.Reader
	var err error
	switch c {
	case exchange.Gzip:
		r, err = gzip.NewReader(bytes.NewReader(from))
	case exchange.Brotli:
		r = brotli.NewReader(bytes.NewReader(from))
	case exchange.Zstd:
		r, err = zstd.NewReader(bytes.NewReader(from), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// text is such as compresses, and goes on after any window.
func text(random *rand.Rand, n int) []byte {
	words := strings.Fields("the quick brown fox jumps over lazy dogs and writes <div class=\"story\"> about it </div> while 42 others look on")
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))])
		fmt.Fprintf(&b, " %d ", random.IntN(1000))
	}
	return b.Bytes()[:n]
}

// What any coding makes at any level decodes to what was written, whatever the pieces.
func TestRoundTrip(t *testing.T) {
	e := newEncoders(1, maxRoom)
	random := rand.New(rand.NewPCG(16, 8))
	for c, levels := range map[exchange.Coding][]int{exchange.Gzip: {1, 6, 9}, exchange.Brotli: {1, 6, 11}, exchange.Zstd: {1, 3, 8, 19}} {
		for _, level := range levels {
			// An encoder serves one answer after another, also after one that broke off.
			for _, size := range []int{0, 1, 300, 70_000, 900_000} {
				all := text(random, size)
				p := &pieces{}
				for rest := all; len(rest) > 0; {
					n := min(1+random.IntN(50_000), len(rest))
					p.list = append(p.list, rest[:n])
					if rest = rest[n:]; len(rest) > 0 && random.IntN(2) == 0 {
						p.list = append(p.list, nil)
					}
				}
				broken := &pieces{list: [][]byte{all}, fails: io.ErrUnexpectedEOF}
				for _, source := range []*pieces{broken, p} {
					if !e.take(c, level, netip.Prefix{}) {
						t.Fatal("none left")
					}
					client := &collector{}
					b := e.encode(exchangeOf(1), source, c, level)
					if err := b.CopyTo(client); err != source.fails {
						t.Fatal(err)
					}
					b.Close()
					if source.closed != 1 {
						t.Errorf("closed %d times", source.closed)
					}
					if source != p {
						continue
					}
					if got := decoded(t, c, client.Bytes()); !bytes.Equal(got, all) {
						t.Errorf("%s %d, %d bytes: %d come out", names[c][0], level, size, len(got))
					}
					if size > 1000 && client.Len() > size/2 {
						t.Errorf("%s %d: %d bytes became %d", names[c][0], level, size, client.Len())
					}
				}
			}
		}
		if n := e.lines[c].active.Load(); n != 0 {
			t.Errorf("%d are still reserved", n)
		}
	}
}

// A flush brings the client all that was written, and nothing leaves after the last byte but the end.
func TestFlushBringsWhatWasWritten(t *testing.T) {
	for _, c := range usualOrder {
		e := newEncoders(1, maxRoom)
		e.take(c, 1, netip.Prefix{})
		client := &collector{}
		seen := ""
		b := e.encode(exchangeOf(1), watching{func(sink exchange.Sink) error {
			_ = sink.Flush()
			if client.flushes != 1 || client.Len() != 0 {
				t.Errorf("%s: before the body %d flushes, %d bytes", names[c][0], client.flushes, client.Len())
			}
			for i := range 3 {
				_ = sink.Write(fmt.Appendf(nil, "event %d\n", i))
				_ = sink.Flush()
				if c == exchange.Gzip {
					r, err := gzip.NewReader(bytes.NewReader(client.Bytes()))
					if err != nil {
						t.Fatal(err)
					}
					so, _ := io.ReadAll(r)
					seen = string(so)
					if want := fmt.Sprintf("event %d\n", i); !strings.HasSuffix(seen, want) {
						t.Errorf("after event %d the client has %q", i, seen)
					}
				}
				if before := client.Len(); before == 0 {
					t.Errorf("%s: nothing came", names[c][0])
				} else if _ = sink.Flush(); client.Len() != before {
					t.Errorf("%s: a flush without anything new adds bytes", names[c][0])
				}
			}
			return nil
		}}, c, 1)
		if err := b.CopyTo(client); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if got := decoded(t, c, client.Bytes()); string(got) != "event 0\nevent 1\nevent 2\n" {
			t.Errorf("%s: %q", names[c][0], got)
		}
	}
}

type watching struct{ copy func(exchange.Sink) error }

func (w watching) CopyTo(sink exchange.Sink) error { return w.copy(sink) }
func (watching) Close()                            {}

// An answer whose encoded form fits into a piece does not hold its encoder while a client is slow to take it.
func TestSlowClientsHoldNoEncoder(t *testing.T) {
	e := newEncoders(1, maxRoom)
	e.take(exchange.Brotli, 4, netip.Prefix{})
	b := e.encode(exchangeOf(1), &pieces{list: [][]byte{text(rand.New(rand.NewPCG(1, 1)), 60_000)}}, exchange.Brotli, 4)
	client := slow{func() {
		if n := e.lines[exchange.Brotli].active.Load(); n != 0 {
			t.Errorf("%d", n)
		}
	}}
	if err := b.CopyTo(client); err != nil {
		t.Fatal(err)
	}
	b.Close()
}

type slow struct{ waits func() }

func (s slow) Write([]byte) error { s.waits(); return nil }
func (slow) Flush() error         { return nil }

func TestNoMoreEncodersThanAllowed(t *testing.T) {
	e := newEncoders(3, maxRoom)
	for c, most := range map[exchange.Coding]int64{exchange.Brotli: 6, exchange.Zstd: 6, exchange.Gzip: 192} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		held := []exchange.Source{}
		for range 8 {
			wg.Go(func() {
				for range 50 {
					if e.take(c, 1, netip.Prefix{}) {
						mu.Lock()
						held = append(held, e.encode(exchangeOf(1), &pieces{}, c, 1))
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if int64(len(held)) != most || e.lines[c].passed.Load() != 400-uint64(most) {
			t.Errorf("%s: %d at once, %d passed over", names[c][0], len(held), e.lines[c].passed.Load())
		}
		for _, b := range held {
			b.Close()
		}
		if n := e.lines[c].active.Load(); n != 0 {
			t.Errorf("%d are still reserved", n)
		}
	}
	var out strings.Builder
	e.WriteMetrics(&out)
	for _, want := range []string{"svc_edge_compressed_answers_total{coding=\"br\"} 6\n", "svc_edge_compression_passed_total{coding=\"gzip\"} 208\n", "svc_edge_compression_active{coding=\"zstd\"} 0\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %sin %s", want, out.String())
		}
	}
}

// breaking is an encoder with a mistake.
type breaking struct {
	on    string
	panic bool
}

var errBroken = errors.New("broken")

func (b *breaking) fail(on string) error {
	switch {
	case b.on != on:
		return nil
	case b.panic:
		panic(errBroken)
	}
	return errBroken
}

func (b *breaking) Write(p []byte) (int, error) { return len(p), b.fail("write") }
func (b *breaking) Flush() error                { return b.fail("flush") }
func (b *breaking) Close() error                { return b.fail("close") }
func (b *breaking) Reset(io.Writer)             { _ = b.fail("reset") }

// A mistake in an encoder ends its answer, gives back what was reserved, and spoils nobody else's.
func TestMistakesOfEncodersEndTheirAnswer(t *testing.T) {
	for _, on := range []string{"make", "reset", "write", "flush", "close"} {
		for _, panics := range []bool{false, true} {
			e := newEncoders(1, maxRoom)
			l := &e.lines[exchange.Gzip]
			l.make = func(int) (encoder, error) {
				made := &breaking{on, panics}
				return made, made.fail("make")
			}
			e.take(exchange.Gzip, 1, netip.Prefix{})
			source := &pieces{list: [][]byte{[]byte("x"), nil, []byte("y")}}
			b := e.encode(exchangeOf(1), source, exchange.Gzip, 1)
			panicked := func() (v any) {
				defer func() { v = recover() }()
				if err := b.CopyTo(&collector{}); err == nil && on != "reset" {
					t.Errorf("%s: no error", on)
				}
				return nil
			}()
			b.Close()
			if (panicked != nil) != panics || source.closed != 1 || l.active.Load() != 0 {
				t.Errorf("%s, panic %v: %v, closed %d, reserved %d", on, panics, panicked, source.closed, l.active.Load())
			}
			if kept := l.idle[1].Get(); panics && kept != nil {
				t.Errorf("%s: an encoder that panicked is used again", on)
			}
		}
	}
}

// What a server may still be writing is nobody else's after a failed write.
func TestFailedWritesOfLaterProtocolsKeepTheirBytes(t *testing.T) {
	for major, again := range map[int]bool{1: true, 2: false, 3: false} {
		e := newEncoders(1, maxRoom)
		e.take(exchange.Gzip, 1, netip.Prefix{})
		made := e.encode(exchangeOf(major), &pieces{list: [][]byte{[]byte("x"), nil}}, exchange.Gzip, 1).(*body)
		if err := made.CopyTo(&collector{fails: 1}); err != errGone {
			t.Errorf("%v", err)
		}
		if spoiled := made.lingering && made.failed; spoiled == again {
			t.Errorf("HTTP/%d: given back %v", major, !spoiled)
		}
		made.Close()
		if n := e.lines[exchange.Gzip].active.Load(); n != 0 {
			t.Errorf("%d", n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	page := text(rand.New(rand.NewPCG(3, 4)), 64<<10)
	e := newEncoders(1, maxRoom)
	for _, c := range []struct {
		coding exchange.Coding
		level  int
	}{{exchange.Gzip, 1}, {exchange.Gzip, 6}, {exchange.Brotli, 4}, {exchange.Brotli, 6}, {exchange.Zstd, 3}, {exchange.Zstd, 8}} {
		b.Run(fmt.Sprint(names[c.coding][0], c.level), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			x := exchangeOf(1)
			source := &pieces{list: [][]byte{page}}
			for b.Loop() {
				e.take(c.coding, c.level, netip.Prefix{})
				made := e.encode(x, source, c.coding, c.level)
				client := slow{func() {}}
				if err := made.CopyTo(client); err != nil {
					b.Fatal(err)
				}
				made.Close()
			}
		})
	}
}
