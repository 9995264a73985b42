package listen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// counted counts the writes of a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

type countingListener struct {
	net.Listener
	core   *core.Core
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: counted{raw, &l.writes}, core: l.core}
	new(Registry).add(c)
	return c, nil
}

// Whatever the sizes of header and body, a gathered answer is what it would have been, in one write where it is small
// enough for that.
func TestGatheredAnswers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingListener{Listener: ln, core: newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})}
	server := &http.Server{
		ConnContext: withConn,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size, _ := strconv.Atoi(r.URL.Query().Get("body"))
			pad, _ := strconv.Atoi(r.URL.Query().Get("header"))
			w.Header().Set("X-Pad", strings.Repeat("p", pad))
			w.Header().Set("Content-Length", strconv.Itoa(size))
			FromContext(r.Context()).Gather(size)
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, strings.Repeat("b", size))
		}),
	}
	go server.Serve(counting)
	defer server.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	reader := bufio.NewReader(conn)
	ask := func(body, header int) {
		t.Helper()
		before := counting.writes.Load()
		fmt.Fprintf(conn, "GET /?body=%d&header=%d HTTP/1.1\r\nHost: a\r\n\r\n", body, header)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(body, header, err)
		}
		got, err := io.ReadAll(response.Body)
		if err != nil || string(got) != strings.Repeat("b", body) || len(response.Header.Get("X-Pad")) != header {
			t.Fatalf("%d bytes behind %d: got %d, %v", body, header, len(got), err)
		}
		if writes := counting.writes.Load() - before; minGathered <= body && body <= maxGatheredBody && header < 2000 && writes != 1 {
			t.Errorf("%d bytes behind %d: %d writes", body, header, writes)
		}
	}
	for body := 0; body <= 20_000; body += 997 {
		for _, header := range []int{1, 500, 3900, 5000, 9000} {
			ask(body, header)
		}
	}
	// Around what the buffer of net/http holds.
	for body := 3500; body <= 4100; body++ {
		ask(body, 100)
	}
}

// A client that does not read cannot hold a connection for ever, one that reads can for as long as it likes.
func TestWritesAreBounded(t *testing.T) {
	const idle = 120 * time.Millisecond
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	c, there := open(t, &Registry{}, node, "192.0.2.1")
	go func() {
		_, _ = io.CopyN(io.Discard, there, 20)
	}()
	for range 20 {
		c.BoundWrites(idle)
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		// What is tested is a limit on time.
		time.Sleep(idle / 4)
	}
	c.BoundWrites(idle)
	if _, err := c.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func endsAtItsLimit(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("who does not read is waited for without end")
	}
}

// The server takes limits off between two requests: each request has its own.
func TestWritesOfEveryRequestAreBounded(t *testing.T) {
	const idle = 1200 * time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	server := &http.Server{
		ConnContext: withConn,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := FromContext(r.Context())
			for part := make([]byte, 64<<10); ; {
				c.BoundWrites(idle)
				_, err := w.Write(part)
				if r.URL.Path == "/first" {
					return
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}),
	}
	go server.Serve(&countingListener{Listener: ln, core: newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})})
	defer server.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	ask := func(path string) { fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path) }
	ask("/first")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	ask("/rest")
	endsAtItsLimit(t, ended)
}

// What the server writes by itself before the next request has its limit is bounded as well.
func TestWritesBetweenRequestsAreBounded(t *testing.T) {
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	c, there := open(t, &Registry{}, node, "192.0.2.1")
	withConn(t.Context(), c)
	c.BoundWrites(120 * time.Millisecond)
	go func() { _, _ = io.CopyN(io.Discard, there, 1) }()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	_ = c.SetWriteDeadline(time.Time{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte{1})
		ended <- err
	}()
	endsAtItsLimit(t, ended)
}

func TestPlainConnections(t *testing.T) {
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain": func(c net.Conn) net.Conn { return c },
		"TLS":   func(c net.Conn) net.Conn { return layer{c} },
	} {
		c, _ := open(t, &Registry{}, node, "192.0.2.1")
		got := FromContext(withConn(context.Background(), wrap(c)))
		if got != c || got.Plain() != (name == "plain") {
			t.Errorf("%s: %v", name, got.Plain())
		}
	}
}

// layer lies above a connection as TLS does.
type layer struct{ net.Conn }

func (l layer) NetConn() net.Conn { return l.Conn }

// A file arrives as it is and is counted, whether the system sends it or not.
func TestFilesAreSentAndCounted(t *testing.T) {
	const size = 3 << 20
	name := t.TempDir() + "/file"
	if err := os.WriteFile(name, []byte(strings.Repeat("0123456789abcdef", size/16)), 0o600); err != nil {
		t.Fatal(err)
	}
	node := newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	for says, wrap := range map[string]func(net.Conn) net.Conn{
		"by the system":     func(c net.Conn) net.Conn { return c },
		"not by the system": func(c net.Conn) net.Conn { return counted{c, new(atomic.Int64)} },
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var account exchange.Account
		account.Init(func() {}, nil)
		server := &http.Server{ConnContext: withConn, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			FromRequest(r)
			file, err := os.Open(name)
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			w.Header().Set("Content-Length", strconv.Itoa(size))
			w.Header()["Date"] = nil
			_, _ = io.CopyN(w, file, size)
		})}
		go server.Serve(wrapping{ln, func(raw net.Conn) net.Conn {
			c := &Conn{Conn: wrap(raw), core: node}
			c.meter.Init(&account)
			new(Registry).add(c)
			return c
		}})
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(conn)
		header, body, _ := strings.Cut(string(got), "\r\n\r\n")
		if err != nil || body != strings.Repeat("0123456789abcdef", size/16) {
			t.Errorf("%s: %d bytes, %q, %v", says, len(got), header, err)
		}
		conn.Close()
		server.Close()
		if _, sent := account.Take(); sent != uint64(len(got)) {
			t.Errorf("%s: %d bytes are counted of %d", says, sent, len(got))
		}
	}
}

type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrapping) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(raw), nil
}
