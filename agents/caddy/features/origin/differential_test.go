package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// reading is a response as a client read it. whole says that its body ended as it has to.
type reading struct {
	err     error
	status  int
	header  http.Header
	body    string
	whole   bool
	trailer http.Header
	// What the Connection fields list.
	connection []string
}

// answered is a connection that responds with fixed bytes, at most 7 at a time, once a request was written.
type answered struct {
	memory
	asked     chan struct{}
	once      sync.Once
	closed    chan struct{}
	closeOnce sync.Once
}

func (a *answered) Write(p []byte) (int, error) {
	a.once.Do(func() { close(a.asked) })
	return len(p), nil
}

func (a *answered) Read(p []byte) (int, error) {
	select {
	case <-a.asked:
	case <-a.closed:
		return 0, net.ErrClosed
	}
	return a.memory.Read(p)
}

func (a *answered) Close() error {
	a.closeOnce.Do(func() { close(a.closed) })
	return nil
}

func (a *answered) SetDeadline(time.Time) error      { return nil }
func (a *answered) SetWriteDeadline(time.Time) error { return nil }
func (a *answered) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (a *answered) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// readByTransport reads a response with the client of net/http.
func readByTransport(t *testing.T, data []byte, method string) (got reading) {
	c := &answered{memory: memory{data: data}, asked: make(chan struct{}), closed: make(chan struct{})}
	transport := &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return c, nil },
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://a.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return reading{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reading{status: res.StatusCode, header: res.Header, body: string(body), whole: err == nil, trailer: res.Trailer}
}

// readByClient reads a response with the client of origins.
func readByClient(data []byte, method string) (got reading) {
	c := &conn{Conn: &memory{data: data}}
	a, err := c.readResponse(method, false, dropped{})
	if err != nil {
		return reading{err: err}
	}
	body, trailer := new(gathered), http.Header(nil)
	got.status, got.header, got.connection = a.status, http.Header{}, a.connection
	a.copyHeader(got.header)
	got.whole = c.deliver(body, a, &trailer) == nil
	got.body, got.trailer = body.String(), trailer
	return got
}

var (
	usualStatusLine = regexp.MustCompile(`^HTTP/1\.[01] [1-9][0-9]{2}( [^\n]*)?$`)
	foldedLine      = regexp.MustCompile(`\n[ \t]`)
	codingField     = regexp.MustCompile(`(?i)\ntransfer-encoding[ \t]*:`)
	blankInName     = regexp.MustCompile(`\n[^:\n]*[ \t][^:\n]*:`)
	bareLF          = regexp.MustCompile(`[^\r]\n`)
	switching       = regexp.MustCompile(`(^|\n)HTTP/[0-9.]+ +101`)
	manyLines       = strings.Repeat("\n", maxFields)
)

// oddStatusLine looks at the first line, and at those that look like one.
func oddStatusLine(data []byte) bool {
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if (i == 0 || strings.HasPrefix(line, "HTTP/")) && !usualStatusLine.MatchString(line) {
			return true
		}
	}
	return false
}

// allowed are the differences between both clients. Each says which data it concerns.
var allowed = []struct {
	name string
	// What the client of origins does where net/http's reads: it refuses the response, or the rest of the body. differs allows
	// any other difference, too.
	refuses, cuts, differs bool
	applies                func(data []byte) bool
}{
	// RFC 9112 §4: three digits, and versions that are not HTTP/1 are not read as if they were.
	{"a status line of another form or version", true, false, false, oddStatusLine},
	// RFC 9112 §5.2: a folded line may be refused, which ends two readings of one field.
	{"a folded line", true, true, false, foldedLine.Match},
	// RFC 9112 §6.1: a coding in HTTP/1.0 is treated as faulty framing.
	{"a transfer coding other than chunked, or in HTTP/1.0", true, false, false, codingField.Match},
	// Nobody asked for another protocol.
	{"101 without a wish to upgrade", true, false, false, switching.Match},
	// net/http bounds bytes alone.
	{"more fields, or informational responses, than allowed", true, true, false, func(data []byte) bool { return bytes.Count(data, []byte("\n")) >= len(manyLines) }},
	// RFC 9110 §5.1: a name is a token. net/http takes blanks in it; RFC 9112 §5.1: a proxy removes those before the colon.
	{"a blank in a name", true, true, false, blankInName.Match},
	// RFC 9112 §7.1.2 has no lines that end with LF alone; net/http wants CR LF at the end of the section only.
	{"a trailer line that ends with LF alone", false, true, false, func(data []byte) bool { return codingField.Match(data) && bareLF.Match(data) }},
	{"blanks before a colon", false, false, true, blankBeforeColon.Match},
}

// withoutOwn leaves out what no client gets from an origin: fields of one hop, and names of the edge.
func withoutOwn(h http.Header, connection []string) http.Header {
	h = maps.Clone(h)
	for name, values := range h {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return originOwns(name, v) })
		if h[name] = values; len(values) == 0 {
			delete(h, name)
		}
	}
	for name := range named(connection) {
		if name != "Content-Length" {
			delete(h, name)
		}
	}
	for _, name := range []string{"Connection", "Upgrade", "Trailer", "Transfer-Encoding"} {
		delete(h, name)
	}
	return h
}

// compare returns in what two readings of the same bytes differ, "" where they do not.
func compare(ours, theirs reading) string {
	if ours.err != nil || theirs.err != nil {
		if (ours.err != nil) == (theirs.err != nil) {
			return ""
		}
		return fmt.Sprintf("error %v, net/http %v", ours.err, theirs.err)
	}
	if ours.status != theirs.status {
		return fmt.Sprintf("status %d, net/http %d", ours.status, theirs.status)
	}
	theirHeader := withoutOwn(theirs.header, ours.connection)
	ourHeader := withoutOwn(ours.header, ours.connection)
	if _, typed := theirHeader["Content-Type"]; !typed {
		// The edge's own mark, so that its server guesses none.
		delete(ourHeader, "Content-Type")
	}
	if theirs.header.Get("Pragma") == "no-cache" && ours.header["Cache-Control"] == nil {
		// net/http adds one for the sake of HTTP/1.0.
		delete(theirHeader, "Cache-Control")
	}
	// A length beside a coding, or with 1xx and 204, says nothing (RFC 9112 §6.3), and is kept by one of them.
	if ourHeader["Content-Length"] == nil || theirHeader["Content-Length"] == nil {
		delete(ourHeader, "Content-Length")
		delete(theirHeader, "Content-Length")
	}
	if !maps.EqualFunc(ourHeader, theirHeader, slices.Equal) {
		return fmt.Sprintf("header %q, net/http %q", ourHeader, theirHeader)
	}
	if ours.whole != theirs.whole {
		return fmt.Sprintf("whole %v, net/http %v", ours.whole, theirs.whole)
	}
	if ours.whole && ours.body != theirs.body {
		return fmt.Sprintf("body %q, net/http %q", ours.body, theirs.body)
	}
	for name, values := range ours.trailer {
		if ours.whole && !slices.Equal(values, theirs.trailer[name]) {
			return fmt.Sprintf("trailer %q, net/http %q", ours.trailer, theirs.trailer)
		}
	}
	return ""
}

// excused reports whether a difference is an allowed one.
func excused(data []byte, ours, theirs reading) bool {
	for _, a := range allowed {
		switch {
		case !a.applies(data):
		case a.refuses && ours.err != nil,
			a.cuts && !ours.whole && theirs.err == nil,
			a.differs:
			return true
		}
	}
	return false
}

// The client of origins reads a response as net/http's Transport does, apart from what is allowed.
func FuzzBesideTransport(f *testing.F) {
	for _, s := range []string{
		okAnswer,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nabc",
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\nEtag: x\nContent-Length: 5\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: X-A, close\r\nX-A: 1\r\nX-A: 2\r\nSet-Cookie: a=b\r\nPragma: no-cache\r\n\r\nrest",
		"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nX-Bad : 1\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1  200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			f.Add([]byte(s), method == "HEAD")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		ours, theirs := readByClient(bytes.Clone(data), method), readByTransport(t, bytes.Clone(data), method)
		if errors.Is(theirs.err, context.Canceled) {
			// The fuzzer ends.
			return
		}
		if difference := compare(ours, theirs); difference != "" && !excused(data, ours, theirs) {
			t.Errorf("%s %q: %s", method, data, difference)
		}
	})
}
