package encode

import (
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/memory"
)

const (
	// Windows, as powers of two and bytes. Larger ones cost memory for each answer under way and win little on pages;
	// browsers take up to 8 MiB of Zstandard.
	brotliWindow = 18
	zstdWindow   = 512 << 10

	// Encoders at work at once, for each core. Those of gzip are the lightest, and what most clients fall back to.
	heavyPerCore = 2
	gzipPerCore  = 64

	// The part of memory for encoders of responses under way, at least and at most.
	partEncoders     = 32
	minRoom, maxRoom = 128 << 20, 1 << 30
)

// bytesOf is what an encoder holds, as measured with responses longer than its window.
func bytesOf(c exchange.Coding, level int) int64 {
	kib := 1400
	switch c {
	case exchange.Brotli:
		kib = [...]int{500, 500, 1300, 1300, 3600, 4200, 5200, 11_400, 19_600, 37_800, 7500, 7500}[min(level, 11)]
	case exchange.Zstd:
		switch {
		case level >= 10:
			kib = 36_200
		case level >= 6:
			kib = 5500
		case level >= 3:
			kib = 2600
		}
	}
	return int64(kib) << 10
}

// encoder compresses one answer after another.
type encoder interface {
	io.Writer
	// Flush writes what a decoder needs to have all that was written.
	Flush() error
	// Close ends the answer. Reset begins the next.
	Close() error
	Reset(w io.Writer)
}

// line is what there is of one coding. Counts are under the lock of the encoders.
type line struct {
	most int64
	// Encoders that exist for a response, those of them at work, and these for each client network.
	open, active atomic.Int64
	networks     map[netip.Prefix]int64
	// Those that have waited and go on once there is a place, in their order.
	queue []*turn
	// By level.
	idle []sync.Pool
	make func(level int) (encoder, error)

	// Answers, those that another coding or none got because too many were at work, and bytes.
	answers, passed, taken, given atomic.Uint64
}

// turn is a place at work that somebody waits for.
type turn struct {
	network netip.Prefix
	comes   chan struct{}
}

// encoders are the encoders of a core, by coding.
type encoders struct {
	mu    sync.Mutex
	lines [exchange.Gzip + 1]line
	// Memory of all encoders that exist for a response, for each client network, and the most in total.
	held, room int64
	holds      map[netip.Prefix]int64
}

var component = core.NewComponent("compression", func(*core.Core) *encoders {
	return newEncoders(runtime.GOMAXPROCS(0), int64(min(max(memory.Limit()/partEncoders, minRoom), maxRoom)))
})

func newEncoders(cores int, room int64) *encoders {
	e := &encoders{room: room, holds: map[netip.Prefix]int64{}}
	e.lines[exchange.Gzip] = line{most: int64(gzipPerCore * cores), idle: make([]sync.Pool, 10), make: newGzip}
	e.lines[exchange.Brotli] = line{most: int64(heavyPerCore * cores), idle: make([]sync.Pool, 12), make: newBrotli}
	e.lines[exchange.Zstd] = line{most: int64(heavyPerCore * cores), idle: make([]sync.Pool, 20), make: newZstd}
	for i := range e.lines {
		e.lines[i].networks = map[netip.Prefix]int64{}
	}
	return e
}

func newGzip(level int) (encoder, error) { return gzip.NewWriterLevel(io.Discard, level) }

func newBrotli(level int) (encoder, error) {
	return brotli.NewWriterOptions(io.Discard, brotli.WriterOptions{Quality: level, LGWin: brotliWindow}), nil
}

func newZstd(level int) (encoder, error) {
	return zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithWindowSize(zstdWindow),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
}

// take reserves an encoder of a coding, unless too many are at work or hold too much memory, or half of that for the client's
// network.
func (e *encoders) take(c exchange.Coding, level int, network netip.Prefix) bool {
	l := &e.lines[c]
	e.mu.Lock()
	defer e.mu.Unlock()
	bytes := bytesOf(c, level)
	if !l.free(network) || !e.fits(bytes, network) {
		l.passed.Add(1)
		return false
	}
	e.held += bytes
	e.holds[network] += bytes
	l.open.Add(1)
	l.begins(network)
	l.answers.Add(1)
	return true
}

// fits reports whether a network may have an encoder of so many bytes. A first one always fits.
func (e *encoders) fits(bytes int64, network netip.Prefix) bool {
	if e.held > 0 && e.held+bytes > e.room {
		return false
	}
	return !network.IsValid() || e.holds[network] == 0 || e.holds[network]+bytes <= e.room/2
}

// giveBack ends what take reserved.
func (e *encoders) giveBack(l *line, bytes int64, network netip.Prefix, works bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held -= bytes
	if e.holds[network] -= bytes; e.holds[network] == 0 {
		delete(e.holds, network)
	}
	l.open.Add(-1)
	if works {
		l.ends(network)
	}
}

// rest frees the place of an encoder that waits for somebody.
func (e *encoders) rest(l *line, network netip.Prefix) {
	e.mu.Lock()
	l.ends(network)
	e.mu.Unlock()
}

// goOn waits for a place again. Who has one computes, so that it comes soon.
func (e *encoders) goOn(l *line, network netip.Prefix) {
	e.mu.Lock()
	if l.free(network) {
		l.begins(network)
		e.mu.Unlock()
		return
	}
	t := &turn{network, make(chan struct{})}
	l.queue = append(l.queue, t)
	e.mu.Unlock()
	<-t.comes
}

// free reports whether an encoder of a network may work.
func (l *line) free(network netip.Prefix) bool {
	return l.active.Load() < l.most && (!network.IsValid() || l.networks[network] < max(l.most/2, 1))
}

func (l *line) begins(network netip.Prefix) {
	l.active.Add(1)
	l.networks[network]++
}

// ends frees a place for the first who waits and may have it.
func (l *line) ends(network netip.Prefix) {
	l.active.Add(-1)
	if l.networks[network]--; l.networks[network] == 0 {
		delete(l.networks, network)
	}
	for i, t := range l.queue {
		if l.free(t.network) {
			l.queue = slices.Delete(l.queue, i, i+1)
			l.begins(t.network)
			close(t.comes)
			return
		}
	}
}

// begin gets the reserved encoder ready.
func (l *line) begin(level int, w io.Writer) (encoder, error) {
	made, _ := l.idle[level].Get().(encoder)
	if made == nil {
		var err error
		if made, err = l.make(level); err != nil {
			return nil, err
		}
	}
	made.Reset(w)
	return made, nil
}

// WriteMetrics writes the figures of compression.
func (e *encoders) WriteMetrics(w io.Writer) {
	for _, m := range []struct {
		name, kind, help string
		value            func(*line) any
	}{
		{"svc_edge_compressed_answers_total", "counter", "Responses that were compressed.", func(l *line) any { return l.answers.Load() }},
		{"svc_edge_compression_passed_total", "counter", "Times a coding was skipped because too many of its encoders were at work or held too much memory.", func(l *line) any { return l.passed.Load() }},
		{"svc_edge_compression_taken_bytes_total", "counter", "Bytes of responses before compression.", func(l *line) any { return l.taken.Load() }},
		{"svc_edge_compression_given_bytes_total", "counter", "Bytes of responses after compression.", func(l *line) any { return l.given.Load() }},
		{"svc_edge_compression_active", "gauge", "Encoders at work.", func(l *line) any { return l.active.Load() }},
		{"svc_edge_compression_waiting", "gauge", "Encoders that wait for a client, an origin or their turn.", func(l *line) any { return max(l.open.Load()-l.active.Load(), 0) }},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, coding := range usualOrder {
			fmt.Fprintf(w, "%s{coding=%q} %d\n", m.name, names[coding][0], m.value(&e.lines[coding]))
		}
	}
	e.mu.Lock()
	held := e.held
	e.mu.Unlock()
	fmt.Fprintf(w, "# HELP svc_edge_compression_memory_bytes Memory of encoders, by what they hold and by the limit.\n# TYPE svc_edge_compression_memory_bytes gauge\nsvc_edge_compression_memory_bytes{of=\"held\"} %d\nsvc_edge_compression_memory_bytes{of=\"limit\"} %d\n", held, e.room)
}
