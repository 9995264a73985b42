package exchange

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// documented is a response writer that has what net/http documents, and nothing that it keeps to itself.
type documented struct{ inner http.ResponseWriter }

func (d documented) Header() http.Header         { return d.inner.Header() }
func (d documented) Write(p []byte) (int, error) { return d.inner.Write(p) }
func (d documented) WriteHeader(status int)      { d.inner.WriteHeader(status) }
func (d documented) FlushError() error           { return http.NewResponseController(d.inner).Flush() }
func (d documented) EnableFullDuplex() error {
	return http.NewResponseController(d.inner).EnableFullDuplex()
}
func (d documented) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(d.inner).SetReadDeadline(t)
}
func (d documented) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(d.inner).SetWriteDeadline(t)
}
func (d documented) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(d.inner).Hijack()
}

// said is a body that says one word.
type said struct{}

func (said) CopyTo(sink Sink) error { return sink.Write([]byte("word")) }
func (said) Close()                 {}

// The left-over body of one request is never read as the next one, whatever the form of the response, and the response
// arrives whole. It hangs on nothing that net/http does not document.
func TestALeftOverBodyIsNeverTheNextRequest(t *testing.T) {
	var requests atomic.Int64
	send := map[string]func(*Exchange) *Answer{
		"/bytes": func(x *Exchange) *Answer {
			a := x.Respond(http.StatusNotFound)
			x.SetBytes(a, append(x.Page(), "word"...))
			return a
		},
		"/chunked": func(x *Exchange) *Answer {
			a := x.Respond(http.StatusOK)
			a.Body, a.From = said{}, FromOrigin
			a.Header["Trailer"], a.Trailer = []string{"X-Sum"}, http.Header{"X-Sum": {"1"}}
			return a
		},
		"/length": func(x *Exchange) *Answer {
			a := x.Respond(http.StatusOK)
			a.Body, a.From = said{}, FromOrigin
			a.Header["Content-Length"] = []string{"4"}
			return a
		},
		"/none": func(x *Exchange) *Answer {
			a := x.Respond(http.StatusNoContent)
			a.From = FromOrigin
			return a
		},
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		x := &Exchange{}
		x.Begin(documented{w}, r)
		defer x.Reset()
		x.Body.Stream()
		if _, err := x.Body.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		x.Body.Stop()
		if !x.Send(send[r.URL.Path](x)) {
			panic(http.ErrAbortHandler)
		}
	})
	for _, secure := range []bool{false, true} {
		server := httptest.NewUnstartedServer(handler)
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		for path := range send {
			for name, body := range map[string]string{
				"length": "Content-Length: 5000\r\n\r\n", "chunks": "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
			} {
				requests.Store(0)
				conn := dial(t, server, secure)
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%sPOST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", path, body)
				reader := bufio.NewReader(conn)
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatalf("%s, %s: %v", path, name, err)
				}
				text, err := io.ReadAll(response.Body)
				if want := map[bool]string{true: "word"}[path != "/none"]; err != nil || string(text) != want {
					t.Errorf("%s, %s: %q %v", path, name, text, err)
				}
				if path == "/chunked" && response.Trailer.Get("X-Sum") != "1" {
					t.Errorf("%s: trailers are %v", name, response.Trailer)
				}
				if more, err := io.ReadAll(reader); err != nil || len(more) > 0 || requests.Load() != 1 {
					t.Errorf("%s, %s: %d requests, then %q %v", path, name, requests.Load(), more, err)
				}
			}
		}
	}
}

func dial(t *testing.T, server *httptest.Server, secure bool) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	if address := server.Listener.Addr().String(); secure {
		conn, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	} else {
		conn, err = net.Dial("tcp", address)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}
