package origin

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// send makes a request of any method and returns status and body.
func (e *edge) send(method, path string, body io.Reader) (int, string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.URL+path, body)
	if err != nil {
		e.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// unknownLength hides the length of a body.
type unknownLength struct{ io.Reader }

var methods = []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH", "LOCK"}

func repeats(method string) bool { return method != "POST" && method != "PATCH" && method != "LOCK" }

func TestRetriesPerMethodAndFailure(t *testing.T) {
	good, seen := answering(t, okAnswer)
	failures := map[string]struct {
		address string
		// Nothing was sent, so every method may go on.
		unsent bool
		status int
		code   string
	}{
		"refused": {dead, true, 502, "origin-unreachable"},
		"closed":  {newRawOrigin(t, func(c net.Conn, _ int64) { readRequest(bufio.NewReader(c)) }).Addr().String(), false, 502, "origin-unreachable"},
		"502":     {once(t, "HTTP/1.1 502 Bad\r\nContent-Length: 4\r\n\r\nbad2").Addr().String(), false, 502, ""},
		"503":     {once(t, "HTTP/1.1 503 Bad\r\nContent-Length: 4\r\n\r\nbad3").Addr().String(), false, 503, ""},
		"504":     {once(t, "HTTP/1.1 504 Bad\r\nContent-Length: 4\r\n\r\nbad4").Addr().String(), false, 504, ""},
		"garbage": {once(t, "nonsense\r\n\r\n").Addr().String(), false, 502, "origin-unreachable"},
	}
	for name, f := range failures {
		for _, method := range methods {
			for _, kind := range []string{"none", "small", "large", "chunked"} {
				if kind != "none" && (method == "GET" || method == "HEAD") {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s body", name, method, kind), func(t *testing.T) {
					e := newEdge(t, settings(), originAt("a", f.address), originAt("b", good.Addr().String()))
					var body io.Reader
					want := ""
					switch kind {
					case "small":
						want = strings.Repeat("s", maxReplay)
						body = strings.NewReader(want)
					case "large":
						want = strings.Repeat("l", maxReplay+1)
						body = strings.NewReader(want)
					case "chunked":
						want = "chunked body"
						body = unknownLength{strings.NewReader(want)}
					}
					status, answer := e.send(method, "/", body)
					goesOn := f.unsent || repeats(method) && (kind == "none" || kind == "small")
					if !goesOn {
						if status != f.status || len(seen) != 0 {
							t.Fatalf("got %d %q, %d requests at the other origin", status, answer, len(seen))
						}
						if f.code != "" && answer != "edge: "+f.code {
							t.Fatalf("got %q", answer)
						}
						return
					}
					if status != 200 {
						t.Fatalf("got %d %q", status, answer)
					}
					got := <-seen
					if !strings.HasPrefix(got, method+" / HTTP/1.1\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+want) {
						t.Fatalf("the second origin got %.300q", got)
					}
				})
			}
		}
	}
}

func TestRetriedAnswersKeepTheirConnection(t *testing.T) {
	good, _ := answering(t, okAnswer)
	bad, _ := answering(t, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 100 }), originAt("a", bad.Addr().String()), originAt("b", good.Addr().String()))
	for range 10 {
		e.wantGet("/", 200, "ok")
	}
	if n := bad.connections.Load(); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

func TestStatusRetryOffPassesTheAnswer(t *testing.T) {
	good, _ := answering(t, okAnswer)
	bad, _ := answering(t, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.StatusRetry = false }), originAt("a", bad.Addr().String()), originAt("b", good.Addr().String()))
	e.wantGet("/", 503, "busy")
	e.wantGet("/", 200, "ok")
}

func TestTriesBoundTheAttempts(t *testing.T) {
	for tries := uint32(1); tries <= 5; tries++ {
		var origins []*configv1.Origin
		total := 0
		var raws []*rawOrigin
		for i := range 6 {
			o := once(t, "HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\n"+fmt.Sprint(i))
			raws = append(raws, o)
			origins = append(origins, originAt(fmt.Sprint(i), o.Addr().String()))
		}
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = tries }), origins...)
		if status, _ := e.get("/"); status != 503 {
			t.Fatalf("the last answer must be passed, got %d", status)
		}
		for _, o := range raws {
			total += int(o.connections.Load())
		}
		if total != int(tries) {
			t.Fatalf("%d tries asked %d origins", tries, total)
		}
	}
}

func TestUnusableOriginsDoNotUseUpTries(t *testing.T) {
	good, _ := answering(t, okAnswer)
	forbidden := originAt("a", "10.0.0.1:80")
	unresolvable := &configv1.Origin{Id: "b", Address: "does-not-exist.invalid", Port: 80}
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = 1 }), forbidden, unresolvable, originAt("c", good.Addr().String()))
	e.wantGet("/", 200, "ok")
	e.compile(settings(), forbidden, unresolvable)
	e.wantGet("/", 502, "edge: no-origin")
	e.compile(settings())
	e.wantGet("/", 502, "edge: no-origin")
	e.compile(settings(), originAt("d", dead), forbidden)
	for range 2 {
		e.wantGet("/", 502, "edge: origin-unreachable")
	}
}

func TestTimeouts(t *testing.T) {
	silent := newRawOrigin(t, func(c net.Conn, _ int64) { io.Copy(io.Discard, c) })
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), originAt("a", silent.Addr().String()))
	e.wantGet("/", 504, "edge: origin-timeout")
	good, _ := answering(t, okAnswer)
	e.compile(settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), originAt("a", silent.Addr().String()), originAt("b", good.Addr().String()))
	e.wantGet("/", 200, "ok")
	// A listener whose queue is full answers no handshake.
	mute := newRawOrigin(t, func(c net.Conn, _ int64) { io.Copy(io.Discard, c) })
	secure := originAt("c", mute.Addr().String())
	secure.Https = true
	e.compile(settings(func(p *configv1.OriginPool) { p.ConnectTimeoutMs = 100 }), secure)
	e.wantGet("/", 504, "edge: origin-timeout")
}

func TestIdleConnectionsAreReusedAndReplacedWhenClosed(t *testing.T) {
	// Each connection serves two requests and closes without a word.
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for range 2 {
			if _, _, err := readRequest(r); err != nil {
				return
			}
			io.WriteString(c, okAnswer)
		}
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	for range 20 {
		for _, method := range []string{"GET", "POST"} {
			if status, body := e.send(method, "/", nil); status != 200 {
				t.Fatalf("%s: got %d %s", method, status, body)
			}
		}
	}
	if n := o.connections.Load(); n < 20 || n > 40 {
		t.Fatalf("40 requests took %d connections", n)
	}
	if e.state.failed.Load() != 0 {
		t.Fatal("a closed idle connection is not a failure of the origin")
	}
}

// Deadlines of one request must not reach the next one on its connection.
func TestIdleConnectionsOutliveTheDeadlinesOfTheirRequests(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.SendTimeoutMs, p.ReadTimeoutMs = 100, 100 }), originAt("a", o.Addr().String()))
	for _, body := range []string{strings.Repeat("b", 20_000), "", strings.Repeat("c", 200_000), "", ""} {
		if status, text := e.send("PUT", "/", strings.NewReader(body)); status != 200 {
			t.Fatalf("got %d %s", status, text)
		}
		if got := <-seen; !strings.HasSuffix(got, "\r\n\r\n"+body) {
			t.Fatalf("got %.200q", got)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n := o.connections.Load(); n != 1 {
		t.Fatalf("5 requests took %d connections", n)
	}
}

func TestKeepaliveLimits(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.KeepaliveMaxRequests = 3 }), originAt("a", o.Addr().String()))
	for range 9 {
		e.wantGet("/", 200, "ok")
		if head := <-seen; strings.Contains(head, "Connection:") {
			t.Fatalf("got %q", head)
		}
	}
	if n := o.connections.Load(); n != 3 {
		t.Fatalf("9 requests took %d connections", n)
	}
	e.compile(settings(func(p *configv1.OriginPool) { p.Keepalive = false }), originAt("a", o.Addr().String()))
	e.transports.CloseIdle()
	for range 3 {
		e.wantGet("/", 200, "ok")
		if head := <-seen; !strings.Contains(head, "\r\nConnection: close\r\n") {
			t.Fatalf("got %q", head)
		}
	}
	if n := o.connections.Load(); n != 6 {
		t.Fatalf("without keep-alive %d connections", n)
	}
}

func TestAnswersThatNobodyAskedForAreNotHeard(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, n int64) {
		r := bufio.NewReader(c)
		for {
			if _, _, err := readRequest(r); err != nil {
				return
			}
			// The second answer would be taken for the one to the next request.
			io.WriteString(c, okAnswer+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		}
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	for range 10 {
		e.wantGet("/", 200, "ok")
	}
}

func TestAnswersThatNobodyAskedForAreNotHeardOverTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	config := &tls.Config{Certificates: certified.TLS.Certificates}
	o := newRawOrigin(t, func(c net.Conn, n int64) {
		held := &corked{Conn: c}
		secure := tls.Server(held, config)
		r := bufio.NewReader(secure)
		for {
			if _, _, err := readRequest(r); err != nil {
				return
			}
			// Slower than the edge waits without watching over its client.
			time.Sleep(2 * patience)
			held.hold = true
			io.WriteString(secure, okAnswer)
			if n%2 == 0 {
				// A record of its own, which is read together with the first.
				io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			}
			held.hold = false
			held.Write(nil)
		}
	})
	origin := originAt("a", o.Addr().String())
	origin.Https = true
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.TlsVerify = false; p.KeepaliveMaxRequests = 2 }), origin)
	for range 12 {
		e.wantGet("/", 200, "ok")
	}
	// Odd connections serve two requests, even ones are dropped after one.
	if n := o.connections.Load(); n != 8 {
		t.Fatalf("12 requests took %d connections", n)
	}
}

func TestPassiveHealthTakesOriginsOutAndLetsThemBack(t *testing.T) {
	good, _ := answering(t, okAnswer)
	fail := true
	flaky := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		if fail {
			w.WriteHeader(503)
		}
		io.WriteString(w, "flaky")
	})
	only := func(p *configv1.OriginPool) { p.StatusRetry = false; p.MaxFails = 2 }
	e := newEdge(t, settings(only), originAt("a", addressOf(flaky)), originAt("b", good.Addr().String()))
	e.wantGet("/", 503, "flaky")
	e.wantGet("/", 200, "ok")
	e.wantGet("/", 503, "flaky")
	for range 6 {
		e.wantGet("/", 200, "ok")
	}
	// A change of the configuration keeps what is known.
	e.compile(settings(only), originAt("b", good.Addr().String()), originAt("a", addressOf(flaky)))
	for range 6 {
		e.wantGet("/", 200, "ok")
	}
	// With all down, everything is tried.
	e.compile(settings(only), originAt("a", addressOf(flaky)))
	fail = false
	e.wantGet("/", 200, "flaky")
	if e.state.failed.Load() != 0 {
		t.Fatal("one success must heal")
	}
}

func TestClientThatLeavesIsNotTheOriginsFailure(t *testing.T) {
	asked := make(chan struct{})
	ended := make(chan struct{})
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		readRequest(r)
		close(asked)
		// The edge hangs up when its client does.
		io.Copy(io.Discard, r)
		close(ended)
	})
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 1 }), originAt("a", o.Addr().String()))
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	c.Close()
	<-ended
	e.Server.Close()
	if e.state.failed.Load() != 0 || len(e.codes) != 0 {
		t.Fatalf("failures %d, codes %v", e.state.failed.Load(), e.codes)
	}
}

func TestTLS(t *testing.T) {
	o := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.ServerName+" "+r.TLS.NegotiatedProtocol+" "+r.Host)
	}))
	o.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.StartTLS()
	t.Cleanup(o.Close)
	secure := func(change func(*configv1.Origin)) *configv1.Origin {
		c := originAt("a", addressOf(o))
		c.Https = true
		change(c)
		return c
	}
	named := secure(func(c *configv1.Origin) { c.HostHeader = "example.com:8443" })
	wrong := secure(func(c *configv1.Origin) { c.Id, c.Sni = "w", "wrong.test" })
	literal := secure(func(c *configv1.Origin) { c.Id = "l" })
	e := newEdge(t, settings(), named)
	e.wantGet("/", 502, "edge: origin-unreachable")
	e.transports.TrustRoots(o.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	e.state = NewState()
	e.compile(settings(), named)
	e.wantGet("/", 200, "example.com http/1.1 example.com:8443")
	// The connection verified for one name must not serve another.
	e.compile(settings(), wrong)
	e.wantGet("/", 502, "edge: origin-unreachable")
	e.compile(settings(), wrong, named)
	e.wantGet("/", 200, "example.com http/1.1 example.com:8443")
	e.compile(settings(), literal)
	e.wantGet("/", 200, " http/1.1 "+e.Listener.Addr().String())
	e.compile(settings(func(p *configv1.OriginPool) { p.TlsVerify = false }), wrong)
	e.wantGet("/", 200, "wrong.test http/1.1 "+e.Listener.Addr().String())
	e.compile(settings(), wrong)
	e.wantGet("/", 502, "edge: origin-unreachable")
	// TLS to a plain port fails as such and goes on.
	p := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) {})
	bad := originAt("p", addressOf(p))
	bad.Https = true
	e.compile(settings(), bad, named)
	if status, body := e.send("POST", "/", strings.NewReader("x")); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	key := originKey{site: "site", origin: "p"}
	if h := e.state.of(key).origins[key]; h == nil || h.why.class != failTLS {
		t.Fatalf("got %+v", h)
	}
}

// A body that was being sent cannot be sent again, whoever was faster: no origin takes nothing, or a part of it, for whole.
func TestStreamedUploadsAreNeverRepeated(t *testing.T) {
	refusing := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
		}
		io.WriteString(c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		io.Copy(io.Discard, r)
	})
	// Its own path: a port may have been another program's a moment ago, whose clients still ask there.
	const path = "/streamed-upload"
	good := httpOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.URL.Path == path {
			t.Errorf("the second origin got %d bytes", len(body))
		}
	})
	// An origin that cannot be connected to may hand its request to the next one; on a busy machine that takes a while.
	patient := settings(func(p *configv1.OriginPool) { p.ConnectTimeoutMs = 600_000 })
	for range 60 {
		// Each upload has an edge of its own: origins take turns, and a request that its client gave up still takes one.
		e := newEdge(t, patient, originAt("a", refusing.Addr().String()), originAt("b", addressOf(good)))
		r, _ := http.NewRequest("PUT", e.URL+path, unknownLength{strings.NewReader(strings.Repeat("x", 100_000))})
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			// The answer may come while the client still sends.
			continue
		}
		if res.Body.Close(); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%d", res.StatusCode)
		}
	}
}

// What a client still sends of a body whose answer came early is never read as a request of its own.
func TestRestOfAnUploadIsNoRequest(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		io.WriteString(c, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
		io.Copy(io.Discard, r)
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, head := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\nbegin", maxReplay+len(smuggled)),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n%x\r\n", len(smuggled)),
	} {
		c, err := net.Dial("tcp", e.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+head)
		r := bufio.NewReader(c)
		a, err := http.ReadResponse(r, nil)
		if err != nil || a.StatusCode != http.StatusForbidden {
			t.Fatalf("got %v %v", a, err)
		}
		if text, err := io.ReadAll(a.Body); err != nil || string(text) != "no" {
			t.Fatalf("got %q %v", text, err)
		}
		// The upload has a grace; what comes after it finds nobody who reads.
		for range 20 {
			time.Sleep(uploadGrace / 5)
			if _, err := io.WriteString(c, smuggled); err != nil {
				break
			}
		}
		if answer, _ := io.ReadAll(r); len(answer) != 0 {
			t.Errorf("after %q came %q", head, answer)
		}
	}
}

// A panic after an upload began ends the upload with it: nobody reads the body of an exchange that is over.
func TestPanicEndsAnUpload(t *testing.T) {
	ended := make(chan struct{})
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		io.Copy(io.Discard, r)
		close(ended)
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	// Which is asked for the time of the failure.
	e.state.now = nil
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n")
	if answer, _ := io.ReadAll(c); len(answer) != 0 {
		t.Fatalf("got %q", answer)
	}
	<-ended
}
