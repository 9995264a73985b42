package h2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// fixed is a connection whose origin sends its settings, and fixed bytes once a request has come, and ends.
type fixed struct {
	mu      sync.Mutex
	wrote   []byte
	begun   bytes.Reader
	rest    bytes.Reader
	asked   chan struct{}
	closed  chan struct{}
	told    bool
	stopped bool
}

func newFixed(data []byte) *fixed {
	f := &fixed{asked: make(chan struct{}), closed: make(chan struct{})}
	f.begun.Reset(appendHead(nil, 0, frameSettings, 0, 0))
	f.rest.Reset(data)
	return f
}

// Write looks for HEADERS.
func (f *fixed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote = append(f.wrote, p...)
	for at := len(preface); len(f.wrote) >= at+headBytes; {
		if f.wrote[at+3] == frameHeaders && !f.told {
			f.told = true
			close(f.asked)
		}
		at += headBytes + (int(f.wrote[at])<<16 | int(f.wrote[at+1])<<8 | int(f.wrote[at+2]))
	}
	return len(p), nil
}

func (f *fixed) Read(p []byte) (int, error) {
	if n, err := f.begun.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-f.asked:
	case <-f.closed:
		return 0, net.ErrClosed
	}
	return f.rest.Read(p)
}

func (f *fixed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopped {
		f.stopped = true
		close(f.closed)
	}
	return nil
}

func (f *fixed) SetDeadline(time.Time) error      { return nil }
func (f *fixed) SetReadDeadline(time.Time) error  { return nil }
func (f *fixed) SetWriteDeadline(time.Time) error { return nil }
func (f *fixed) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (f *fixed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// reading is a response as a client read it. cut says why its body did not end as it has to.
type reading struct {
	err, cut error
	status   int
	header   http.Header
	body     string
	trailer  http.Header
}

func headerOf(fields []Field) http.Header {
	h := http.Header{}
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

func readByConn(t *testing.T, data []byte, method string) (got reading) {
	c := newConn(newFixed(data), time.Hour)
	defer c.Close()
	<-c.Ready()
	if !c.Reserve() {
		t.Fatal(c.Err())
	}
	s, _, err := c.Open(Request{
		Block: AppendRequest(nil, []byte(method), []byte("http"), []byte("a.com"), []byte("/")), HeadOnly: method == http.MethodHead,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var h *Header
	for h == nil || h.Status < 200 {
		if h, err = s.Header(t.Context(), time.Hour); err != nil {
			return reading{err: err}
		}
	}
	got.status, got.header = h.Status, headerOf(h.Fields)
	for {
		p, _, err := s.Read(t.Context(), time.Hour)
		if err == io.EOF {
			got.trailer = headerOf(s.Trailers())
			return got
		}
		if err != nil {
			got.cut = err
			return got
		}
		got.body += string(p)
	}
}

func readByTransport(t *testing.T, data []byte, method string) reading {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return newFixed(data), nil },
	}
	defer transport.CloseIdleConnections()
	// GOAWAY and REFUSED_STREAM have it ask again.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://a.com/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c, err := transport.NewClientConn(ctx, "http", "a.com:80")
	if err != nil {
		return reading{err: err}
	}
	defer c.Close()
	res, err := c.RoundTrip(r)
	if err != nil {
		return reading{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reading{cut: err, status: res.StatusCode, header: res.Header, body: string(body), trailer: res.Trailer}
}

// plainly is a header as both read it.
func plainly(h http.Header) http.Header {
	h = maps.Clone(h)
	for name, values := range h {
		values = slices.Clone(values)
		for i := range values {
			values[i] = strings.Trim(values[i], " \t")
		}
		if h[name] = values; len(values) == 0 || ofHTTP1(strings.ToLower(name)) {
			delete(h, name)
		}
	}
	// net/http has the names of trailers apart.
	delete(h, "Trailer")
	return h
}

// compare returns in what two readings of the same bytes differ, "" where they do not. A response that both refuse, or both
// cut, is as good for one as for the other.
func compare(ours, theirs reading) string {
	switch {
	case ours.err != nil || theirs.err != nil:
		if (ours.err != nil) == (theirs.err != nil) {
			return ""
		}
		return fmt.Sprintf("error %v, net/http %v", ours.err, theirs.err)
	case ours.status != theirs.status:
		return fmt.Sprintf("status %d, net/http %d", ours.status, theirs.status)
	case !maps.EqualFunc(plainly(ours.header), plainly(theirs.header), slices.Equal):
		return fmt.Sprintf("header %q, net/http %q", ours.header, theirs.header)
	case (ours.cut != nil) != (theirs.cut != nil):
		return fmt.Sprintf("cut %v, net/http %v", ours.cut, theirs.cut)
	case ours.cut == nil && ours.body != theirs.body:
		return fmt.Sprintf("body %q, net/http %q", ours.body, theirs.body)
	case ours.cut == nil && !maps.EqualFunc(plainly(ours.trailer), plainly(theirs.trailer), slices.Equal):
		return fmt.Sprintf("trailer %q, net/http %q", ours.trailer, theirs.trailer)
	}
	return ""
}

// laxer reports whether this client reads what net/http cuts: a 204 and a 304 have no body, whatever their length says (RFC
// 9113 §8.1.1).
func laxer(ours, theirs reading) bool {
	return theirs.cut != nil && ours.cut == nil && (ours.status == http.StatusNoContent || ours.status == http.StatusNotModified)
}

// stricter reports whether this client refuses, or cuts, what net/http reads: for a rule that net/http does not hold.
func stricter(ours, theirs reading) bool {
	var broken *connError
	failure := errors.Join(ours.err, ours.cut)
	return theirs.err == nil && (errors.Is(failure, ErrMalformed) || errors.Is(failure, ErrTooLarge) || errors.As(failure, &broken))
}

// script writes frames of an origin.
func script(write func(f *http2.Framer)) []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	write(f)
	return b.Bytes()
}

func scripts() [][]byte {
	headers := func(f *http2.Framer, end bool, fields ...string) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields...), EndHeaders: true, EndStream: end})
	}
	var all [][]byte
	for _, write := range []func(f *http2.Framer){
		func(f *http2.Framer) {
			headers(f, false, ":status", "200", "content-length", "2", "x", "y")
			_ = f.WriteData(1, true, []byte("ok"))
		},
		func(f *http2.Framer) {
			headers(f, false, ":status", "100")
			headers(f, false, ":status", "103", "link", "x")
			headers(f, false, ":status", "200", "trailer", "X-Sum", "set-cookie", "a", "set-cookie", "b")
			_ = f.WriteDataPadded(1, false, []byte("some"), make([]byte, 7))
			_ = f.WriteData(1, false, nil)
			headers(f, true, "x-sum", "1")
		},
		func(f *http2.Framer) { headers(f, true, ":status", "200", "grpc-status", "5") },
		func(f *http2.Framer) { headers(f, true, ":status", "204", "content-length", "0") },
		func(f *http2.Framer) { headers(f, true, ":status", "304", "content-length", "5") },
		func(f *http2.Framer) { headers(f, true, ":status", "204", "content-length", "1") },
		func(f *http2.Framer) { headers(f, true, "transfer-encoding", "chunked", ":status", "200") },
		func(f *http2.Framer) {
			headers(f, false, ":status", "200")
			_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
			_ = f.WriteData(1, true, []byte("x"))
		},
		func(f *http2.Framer) {
			b := block(":status", "200", "a", "b")
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:1], Priority: http2.PriorityParam{Weight: 3}, PadLength: 2})
			_ = f.WriteContinuation(1, true, b[1:])
			_ = f.WriteWindowUpdate(0, 5)
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 15})
			_ = f.WriteSettingsAck()
			_ = f.WritePing(false, [8]byte{})
			_ = f.WriteData(1, true, []byte("x"))
		},
		func(f *http2.Framer) {
			headers(f, false, ":status", "200")
			_ = f.WriteRSTStream(1, http2.ErrCodeInternal)
		},
		func(f *http2.Framer) { _ = f.WriteRSTStream(1, http2.ErrCodeRefusedStream) },
		func(f *http2.Framer) {
			headers(f, false, ":status", "200")
			_ = f.WriteGoAway(1, http2.ErrCodeNo, []byte("bye"))
			_ = f.WriteData(1, true, []byte("last"))
		},
		func(f *http2.Framer) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) },
		func(f *http2.Framer) {
			headers(f, false, ":status", "200", "content-length", "5")
			_ = f.WriteData(1, true, []byte("x"))
		},
		func(f *http2.Framer) {
			headers(f, false, ":status", "200")
			_ = f.WriteRawFrame(0x42, 0xff, 9, []byte("x"))
			_ = f.WritePriority(1, http2.PriorityParam{})
		},
	} {
		all = append(all, script(write))
	}
	return all
}

// The client reads a response as net/http's does, or refuses it for a rule. Whatever comes, it ends.
func FuzzBesideTransport(f *testing.F) {
	// net/http tells there what origins do wrong.
	log.SetOutput(io.Discard)
	for _, data := range scripts() {
		f.Add(data, false)
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		ours, theirs := readByConn(t, data, method), readByTransport(t, data, method)
		if errors.Is(theirs.err, context.Canceled) || errors.Is(theirs.err, context.DeadlineExceeded) {
			// The fuzzer ends, or the machine is busy.
			return
		}
		if difference := compare(ours, theirs); difference != "" && !stricter(ours, theirs) && !laxer(ours, theirs) {
			t.Errorf("%s %x: %s", method, data, difference)
		}
	})
}

// A header block says what it was made of, to every decoder.
func FuzzHeaderBlock(f *testing.F) {
	f.Add("GET", "/", "a.test", "Accept", "*/*")
	f.Add("PATCH", "/a?b", "", "Cookie", strings.Repeat("x", 300))
	f.Add("POST", "/x", "b:80", strings.Repeat("Long-Name", 20), "")
	f.Fuzz(func(t *testing.T, method, path, authority, name, value string) {
		b := AppendRequest([]byte{tableOfNone}, []byte(method), []byte("https"), []byte(authority), []byte(path))
		b = AppendField(b, []byte(name), []byte(value))
		fields, err := hpack.NewDecoder(tableSize, nil).DecodeFull(b)
		if err != nil {
			t.Fatal(err)
		}
		want := []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: authority}, {Name: ":path", Value: path}}
		if authority == "" {
			want = slices.Delete(want, 2, 3)
		}
		lower := strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, name)
		if lower != name && strings.ContainsRune(name, '\uFFFD') {
			return
		}
		for i, f := range fields {
			if f.Sensitive = false; i < len(want) && f != want[i] || i == len(want) && f.Value != value {
				t.Errorf("field %d is %q", i, f)
			}
		}
		if got := fields[len(fields)-1].Name; len(fields) != len(want)+1 || got != lower && strings.ToValidUTF8(name, "") == name {
			t.Errorf("%d fields, the last %q", len(fields), got)
		}
	})
}
