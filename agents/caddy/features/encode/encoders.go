package encode

import (
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

const (
	// Windows, as powers of two and bytes. Larger ones cost memory for each answer under way and win little on pages;
	// browsers take up to 8 MiB of Zstandard.
	brotliWindow = 18
	zstdWindow   = 512 << 10

	// Encoders at work at once, for each core. Those of gzip are the lightest, and what most clients fall back to.
	heavyPerCore = 2
	gzipPerCore  = 64
)

// encoder compresses one answer after another.
type encoder interface {
	io.Writer
	// Flush writes what a decoder needs to have all that was written.
	Flush() error
	// Close ends the answer. Reset begins the next.
	Close() error
	Reset(w io.Writer)
}

// line is what there is of one coding.
type line struct {
	most   int64
	active atomic.Int64
	// Encoders at work for each client network.
	mu       sync.Mutex
	networks map[netip.Prefix]int64
	// By level.
	idle []sync.Pool
	make func(level int) (encoder, error)

	// Answers, those that another coding or none got because too many were at work, and bytes.
	answers, passed, taken, given atomic.Uint64
}

// encoders are the encoders of a core, by coding.
type encoders struct{ lines [exchange.Gzip + 1]line }

var component = core.NewComponent("compression", func(*core.Core) *encoders { return newEncoders(runtime.GOMAXPROCS(0)) })

func newEncoders(cores int) *encoders {
	e := &encoders{}
	e.lines[exchange.Gzip] = line{most: int64(gzipPerCore * cores), idle: make([]sync.Pool, 10), make: newGzip}
	e.lines[exchange.Brotli] = line{most: int64(heavyPerCore * cores), idle: make([]sync.Pool, 12), make: newBrotli}
	e.lines[exchange.Zstd] = line{most: int64(heavyPerCore * cores), idle: make([]sync.Pool, 20), make: newZstd}
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

// take reserves an encoder of a coding, unless too many are at work, or half of all for the client's network.
func (e *encoders) take(c exchange.Coding, network netip.Prefix) bool {
	l := &e.lines[c]
	if !l.reserve(network) {
		l.passed.Add(1)
		return false
	}
	l.answers.Add(1)
	return true
}

func (l *line) reserve(network netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active.Load() >= l.most || network.IsValid() && l.networks[network] >= max(l.most/2, 1) {
		return false
	}
	if l.networks == nil {
		l.networks = map[netip.Prefix]int64{}
	}
	l.active.Add(1)
	l.networks[network]++
	return true
}

// giveBack ends what take reserved.
func (l *line) giveBack(network netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.Add(-1)
	if l.networks[network]--; l.networks[network] == 0 {
		delete(l.networks, network)
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
		{"svc_edge_compression_passed_total", "counter", "Times a coding was skipped because all of its encoders were in use.", func(l *line) any { return l.passed.Load() }},
		{"svc_edge_compression_taken_bytes_total", "counter", "Bytes of responses before compression.", func(l *line) any { return l.taken.Load() }},
		{"svc_edge_compression_given_bytes_total", "counter", "Bytes of responses after compression.", func(l *line) any { return l.given.Load() }},
		{"svc_edge_compression_active", "gauge", "Encoders in use.", func(l *line) any { return l.active.Load() }},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, coding := range usualOrder {
			fmt.Fprintf(w, "%s{coding=%q} %d\n", m.name, names[coding][0], m.value(&e.lines[coding]))
		}
	}
}
