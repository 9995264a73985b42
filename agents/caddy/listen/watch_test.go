package listen

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// watchedServer serves connections as the listener of the edge hands them on.
func watchedServer(t *testing.T, handler http.HandlerFunc) (dial func() (net.Conn, *bufio.Reader)) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ConnContext: withConn, IdleTimeout: time.Minute, ReadHeaderTimeout: time.Minute, Handler: handler}
	go server.Serve(&plainListener{ln, newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})})
	t.Cleanup(func() { server.Close() })
	return func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return conn, bufio.NewReader(conn)
	}
}

// lookedAt waits until the edge looks at the connection of a request.
func lookedAt(t *testing.T, r *http.Request) {
	c := FromContext(r.Context())
	until(t, "the client is watched", func() bool {
		c.reads.mu.Lock()
		defer c.reads.mu.Unlock()
		return c.reads.over != nil
	})
}

func TestARequestEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"that closes":       func(c *net.TCPConn) { c.Close() },
		"that resets":       func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
		"that says no more": func(c *net.TCPConn) { _ = c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan struct{})
			dial := watchedServer(t, func(_ http.ResponseWriter, r *http.Request) {
				lookedAt(t, r)
				close(begun)
				select {
				case <-r.Context().Done():
				case <-time.After(time.Minute):
					t.Error("the request goes on")
				}
				close(ended)
			})
			conn, _ := dial()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			<-begun
			leave(conn.(*net.TCPConn))
			<-ended
		})
	}
}

// Requests over one connection, fast and slow ones, with bodies and without, each behind the end of the last or before it:
// no byte is lost to the look for the end of the client.
func TestTheLookTakesNothingOfTheNextRequest(t *testing.T) {
	dial := watchedServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Query().Has("slow") {
			lookedAt(t, r)
		}
		if err := r.Context().Err(); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s", r.URL, body)
	})
	conn, reader := dial()
	expect := func(want string) {
		t.Helper()
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(want, err)
		}
		if got, _ := io.ReadAll(response.Body); string(got) != want {
			t.Fatalf("%q, not %q", got, want)
		}
	}
	for i := range 3 {
		for _, slow := range []string{"", "?slow"} {
			target := fmt.Sprintf("/%d%s", i, slow)
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target)
			expect(target + " ")
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", target)
			expect(target + " hello")
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nworld\r\n0\r\n\r\n", target)
			expect(target + " world")
		}
	}
	// What is sent early stays for its turn; the first request has been looked at, or not.
	for _, first := range []string{"/a", "/a?x"} {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n%s", first, strings.Repeat("GET /b HTTP/1.1\r\nHost: a\r\n\r\n", 3))
		expect(first + " ")
		for range 3 {
			expect("/b ")
		}
	}
}

// Bytes that come while the edge looks are the next request's, and the deadline of an earlier read ends nothing.
func TestALookOutlivesADeadlineOfBefore(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	dial := watchedServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			lookedAt(t, r)
			c := FromContext(r.Context())
			c.reads.mu.Lock()
			// As one that was handed on for the head, and passes now.
			_ = c.Conn.SetReadDeadline(longAgo)
			c.reads.mu.Unlock()
			until(t, "the client is watched again", func() bool {
				c.reads.mu.Lock()
				defer c.reads.mu.Unlock()
				return c.reads.over != nil && c.reads.holds.IsZero()
			})
			close(begun)
			<-goOn
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w, r.URL.Path)
	})
	conn, reader := dial()
	fmt.Fprint(conn, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	fmt.Fprint(conn, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
	close(goOn)
	for _, want := range []string{"/slow", "/next"} {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(response.Body); string(got) != want {
			t.Fatalf("%q, not %q", got, want)
		}
	}
}
