package exchange

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// refuse answers as the edge does by itself.
func refuse(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{}
	x.Begin(w, r)
	a := x.Respond(http.StatusNotFound)
	x.SetBytes(a, append(x.Page(), "not here"...))
	x.Send(a)
	x.Reset()
}

// Who announces a body and never sends it gets the refusal all the same, and the connection ends: its rest could be
// taken for another request.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	defer func(before time.Duration) { bodyTimes.rest = before }(bodyTimes.rest)
	bodyTimes.rest = 50 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r)
	}))
	defer server.Close()
	for name, rest := range map[string]string{
		"nothing of it":   "Content-Length: 5000\r\n\r\n",
		"some of it":      "Content-Length: 5000\r\n\r\nabc",
		"half a chunk":    "Transfer-Encoding: chunked\r\n\r\n400\r\nabc",
		"no end of it":    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"more than fits":  "Content-Length: 500000000\r\n\r\n",
		"what it expects": "Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s", rest)
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %v", name, response.StatusCode, err)
		}
		if _, err := reader.ReadByte(); err == nil {
			t.Errorf("%s: more was sent", name)
		} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Errorf("%s: the connection stays", name)
		}
	}
}

// A body that comes in time leaves the connection for the next request, without the deadline of this one.
func TestConnectionOutlivesARefusal(t *testing.T) {
	defer func(before time.Duration) { bodyTimes.rest = before }(bodyTimes.rest)
	bodyTimes.rest = 300 * time.Millisecond
	reading := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/origin" {
			close(reading)
			// As long as the client likes: this one is not the edge's to bound.
			body, err := io.ReadAll(r.Body)
			if err != nil || len(body) != 3 {
				t.Errorf("%q %v", body, err)
			}
			return
		}
		refuse(w, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	reader := bufio.NewReader(conn)
	begun := time.Now()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
	first, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, first.Body)
	fmt.Fprint(conn, "POST /origin HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab")
	<-reading
	// Past the deadline of the first request.
	time.Sleep(time.Until(begun.Add(2 * bodyTimes.rest)))
	fmt.Fprint(conn, "c")
	second, err := http.ReadResponse(reader, nil)
	if err != nil || second.StatusCode != http.StatusOK {
		t.Errorf("%v %v", second, err)
	}
}
