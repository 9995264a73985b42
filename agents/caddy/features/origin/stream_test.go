package origin

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// pattern is an endless body that can be compared without keeping it.
func pattern(n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), n)
}

func sumOf(r io.Reader) (int64, string) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return n, fmt.Sprintf("%x %v", h.Sum(nil), err)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLargeBodiesStreamBothWaysInLittleMemory(t *testing.T) {
	const size = 50 << 20
	_, want := sumOf(pattern(size))
	half := make(chan uint64, 1)
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		n, sum := sumOf(r.Body)
		if n != size || sum != want {
			t.Errorf("the origin got %d bytes, %s", n, sum)
		}
		half <- heap()
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		io.Copy(w, pattern(size))
	})
	e := newEdge(t, settings(), originAt("a", addressOf(o)))
	for _, path := range []string{"/length", "/chunked"} {
		before := heap()
		var body io.Reader = unknownLength{pattern(size)}
		req, err := http.NewRequestWithContext(t.Context(), "PUT", e.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if path == "/length" {
			req.ContentLength = size
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		during := <-half
		n, sum := sumOf(res.Body)
		res.Body.Close()
		if n != size || sum != want {
			t.Fatalf("%s: the client got %d bytes, %s", path, n, sum)
		}
		if grown := int64(max(during, heap())) - int64(before); grown > 8<<20 {
			t.Fatalf("%s: memory grew by %d bytes", path, grown)
		}
	}
}

// Both sides speak in turn within one request: each waits for the other's last word.
func TestBothWaysAtOnce(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(w, "echo %s\n", lines.Text())
			http.NewResponseController(w).Flush()
		}
	})
	e := newEdge(t, settings(), originAt("a", addressOf(o)))
	up, send := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", e.URL, up)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answers := bufio.NewReader(res.Body)
	for i := range 50 {
		fmt.Fprintf(send, "line %d\n", i)
		line, err := answers.ReadString('\n')
		if err != nil || line != fmt.Sprintf("echo line %d\n", i) {
			t.Fatalf("got %q %v", line, err)
		}
	}
	send.Close()
	if rest, err := io.ReadAll(answers); err != nil || len(rest) != 0 {
		t.Fatalf("got %q %v", rest, err)
	}
}

// Each event must reach the client before the origin sends the next.
func TestEventsAreFlushedAtOnce(t *testing.T) {
	for name, header := range map[string]string{
		"event stream": "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", "to the end": "Connection: close\r\n", "known length": "Content-Length: 40\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{})
			o := newRawOrigin(t, func(c net.Conn, _ int64) {
				readRequest(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 200 OK\r\n"+header+"\r\n")
				for i := range 4 {
					<-next
					event := fmt.Sprintf("data: %d\n\n", i)
					event += strings.Repeat(" ", 10-len(event))
					if strings.Contains(header, "chunked") {
						event = "a\r\n" + event + "\r\n"
					}
					io.WriteString(c, event)
				}
				if strings.Contains(header, "chunked") {
					io.WriteString(c, "0\r\n\r\n")
				}
			})
			e := newEdge(t, settings(), originAt("a", o.Addr().String()))
			c, err := net.Dial("tcp", e.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(30 * time.Second))
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if name == "known length" {
				// Its header travels with the first bytes of the body.
				next <- struct{}{}
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				if i > 0 || name != "known length" {
					next <- struct{}{}
				}
				event := make([]byte, 10)
				if _, err := io.ReadFull(res.Body, event); err != nil || !strings.HasPrefix(string(event), fmt.Sprintf("data: %d\n\n", i)) {
					t.Fatalf("got %q %v", event, err)
				}
			}
			if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
				t.Fatalf("got %q %v", rest, err)
			}
		})
	}
}

func TestReadTimeoutIsThePauseBetweenReads(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, n int64) {
		readRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n")
		for range 30 {
			// Thirty pauses are together longer than the timeout, each is much shorter.
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, "x")
		}
		io.Copy(io.Discard, c)
	})
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 400 }), originAt("a", o.Addr().String()))
	e.wantGet("/", 200, strings.Repeat("x", 30))
}

func TestOriginThatStallsInABodyBreaksTheAnswer(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		readRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nhalf")
		io.Copy(io.Discard, c)
	})
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), originAt("a", o.Addr().String()))
	res, err := http.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Fatalf("got %q", body)
	}
}

// The time to answer begins when the body is complete, so a long upload is no timeout of the origin.
func TestUploadsMayPauseLongerThanTheReadTimeout(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), err)
	})
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), originAt("a", addressOf(o)))
	up, send := io.Pipe()
	go func() {
		for range 4 {
			io.WriteString(send, "part ")
			time.Sleep(150 * time.Millisecond)
		}
		send.Close()
	}()
	if status, body := e.send("POST", "/", up); status != 200 || body != "part part part part <nil>" {
		t.Fatalf("got %d %q", status, body)
	}
}

func TestClientThatStallsInItsBodyIsAnsweredWithATimeout(t *testing.T) {
	o, _ := answering(t, okAnswer)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.SendTimeoutMs = 100; p.MaxFails = 1 }), originAt("a", o.Addr().String()))
	for _, head := range []string{"Content-Length: 10\r\n\r\nhalf", "Content-Length: 1000000\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"} {
		if answer := e.raw("POST / HTTP/1.1\r\nHost: a\r\n" + head); !strings.HasPrefix(answer, "HTTP/1.1 408 ") || !strings.Contains(answer, "Connection: close\r\n") {
			t.Fatalf("%q: got %q", head, answer)
		}
	}
	if e.state.failed.Load() != 0 {
		t.Fatal("the client's pause was counted against the origin")
	}
}

func TestClientThatLeavesInItsBodyIsNotTheOriginsFailure(t *testing.T) {
	ended := make(chan struct{}, 10)
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		io.Copy(io.Discard, c)
		ended <- struct{}{}
	})
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 1 }), originAt("a", o.Addr().String()))
	for _, head := range []string{"Content-Length: 1000000\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"} {
		c, err := net.Dial("tcp", e.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\n"+head)
		c.Close()
		<-ended
	}
	e.Server.Close()
	if e.state.failed.Load() != 0 || len(e.codes) != 0 {
		t.Fatalf("failures %d, codes %v", e.state.failed.Load(), e.codes)
	}
}

func TestBodyLimit(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	for _, limit := range []int64{10, 100_000} {
		e.pool.Load().bodyLimit = limit
		for _, chunked := range []bool{false, true} {
			for _, over := range []int64{0, 1} {
				var body io.Reader = strings.NewReader(strings.Repeat("x", int(limit+over)))
				if chunked {
					body = unknownLength{body}
				}
				status, text := e.send("POST", "/", body)
				if over == 0 && (status != 200 || !strings.HasSuffix(<-seen, strings.Repeat("x", int(limit)))) || over == 1 && (status != 413 || text != "edge: body-too-large") {
					t.Fatalf("limit %d, over by %d, chunked %v: got %d %s", limit, over, chunked, status, text)
				}
			}
		}
	}
	if len(seen) != 0 {
		t.Fatal("an origin took a body that is too large for whole")
	}
}

func TestEarlyAnswerToALargeUploadReachesTheClient(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil || line == "\r\n" {
				break
			}
		}
		io.WriteString(c, "HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nauth")
		// Reads on so that the answer is not lost in a reset.
		io.Copy(io.Discard, r)
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nfirst bytes")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); res.StatusCode != 401 || string(body) != "auth" {
		t.Fatalf("got %d %q %v", res.StatusCode, body, err)
	}
	// The rest of the body must not be taken for a request.
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatalf("%d more bytes", n)
	}
}

func TestExpectContinueIsAnsweredByTheEdge(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q %v", line, err)
	}
	r.ReadString('\n')
	io.WriteString(c, "body")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err)
	}
	if got := <-seen; strings.Contains(got, "Expect") || !strings.HasSuffix(got, "body") {
		t.Fatalf("got %q", got)
	}
}

// A ban ends what is open by cancelling the request's context.
func TestCancelledRequestEndsAtOnce(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		readRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nhalf")
		io.Copy(io.Discard, c)
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	cancels := make(chan context.CancelFunc, 1)
	inner := e.Config.Handler
	e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancels <- cancel
		inner.ServeHTTP(w, r.WithContext(ctx))
	})
	res, err := http.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	(<-cancels)()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Fatalf("got %q", body)
	}
}

// A writer that gives up must not leave an upload, a connection or a watch behind.
func TestPanicOfTheWriterEndsEverything(t *testing.T) {
	ended := make(chan struct{})
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		io.WriteString(c, okAnswer)
		io.Copy(io.Discard, r)
		close(ended)
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	e.answer = func(*exchange.Answer) { panic(http.ErrAbortHandler) }
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n")
	if answer, _ := io.ReadAll(c); len(answer) != 0 {
		t.Fatalf("got %q", answer)
	}
	<-ended
}

func TestManyRequestsBesideOneAnother(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Path", r.URL.Path)
		fmt.Fprintf(w, "%s %d %s", r.URL.Path, len(body), strings.Repeat("z", len(r.URL.Path)*500))
	})
	e := newEdge(t, settings(), originAt("a", addressOf(o)), originAt("b", addressOf(o)), originAt("dead", dead))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	done := make(chan error)
	for worker := range 16 {
		go func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := range 100 {
				path, n := fmt.Sprintf("/%d/%d", worker, i), r.IntN(100_000)
				var body io.Reader = strings.NewReader(strings.Repeat("b", n))
				if n%3 == 0 {
					body = unknownLength{body}
				}
				res, err := client.Post(e.URL+path, "text/plain", body)
				if err != nil {
					done <- err
					return
				}
				text, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := fmt.Sprintf("%s %d %s", path, n, strings.Repeat("z", len(path)*500)); err != nil || string(text) != want || res.Header.Get("X-Path") != path {
					done <- fmt.Errorf("%s: got %d %.100q %v", path, res.StatusCode, text, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
