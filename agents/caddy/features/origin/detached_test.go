package origin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// fetcher asks the origins of an edge without any client.
func (e *edge) fetcher() Fetcher {
	return Fetcher{Transports: e.transports, CDNLoop: "svc-0123456789abcdef", Pool: e.pool.Load(), Shared: e.shared}
}

func asking(method, target string, header http.Header) *exchange.Request {
	return &exchange.Request{In: exchange.Inbound{
		Method: method, Target: exchange.Target{Raw: target}, HostRaw: "a.com", Scheme: "https", Header: header,
		Client: netip.MustParseAddr("192.0.2.77"), Peer: netip.MustParseAddr("192.0.2.77"), ID: "req-00000001",
	}}
}

// copied is what a body copies, closed after.
func copied(r *exchange.Response) (string, error) {
	defer r.Body.Close()
	sink := new(gathered)
	err := r.Body.CopyTo(sink)
	return sink.String(), err
}

func TestFetchWithoutAClient(t *testing.T) {
	for _, c := range []struct {
		name, method, answer string
		status               int
		body                 string
		header, trailer      string
	}{
		{"a body of known length", "GET", okAnswer, 200, "ok", "map[Content-Length:[2]]", "map[]"},
		{"chunks and trailers", "GET", "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Svc-Error: no\r\n\r\n",
			200, "ok", "map[Trailer:[X-Sum]]", "map[X-Sum:[1]]"},
		{"to the end of the connection", "GET", "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nServer: x\r\nX-Svc-Site: x\r\nSet-Cookie: a=b\r\n\r\nok",
			200, "ok", "map[Set-Cookie:[a=b]]", "map[]"},
		{"a HEAD", "HEAD", okAnswer[:len(okAnswer)-2], 200, "", "map[Content-Length:[2]]", "map[]"},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 2\r\n\r\n", 304, "", "map[Content-Length:[2] Etag:[\"e\"]]", "map[]"},
		{"no content", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", "map[]", "map[]"},
		{"informational responses first", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nServer: x\r\n\r\n" + okAnswer, 200, "ok", "map[Content-Length:[2]]", "map[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ends := strings.Contains(c.answer, "Connection: close")
			seen := make(chan string, 1)
			o := newRawOrigin(t, func(conn net.Conn, _ int64) {
				r := bufio.NewReader(conn)
				for {
					head, _, err := readRequest(r)
					if err != nil {
						return
					}
					seen <- head
					if io.WriteString(conn, c.answer); ends {
						return
					}
				}
			})
			e := newEdge(t, settings(), originAt("a", o.Addr().String()))
			r := asking(c.method, "/x?y", http.Header{"X-Own": {"1"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}})
			var interim []string
			r.Interim = func(status int, header http.Header) { interim = append(interim, fmt.Sprint(status, header)) }
			response, err := e.fetcher().Fetch(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := copied(response)
			if err != nil || body != c.body || response.Status != c.status || fmt.Sprint(response.Header) != c.header || fmt.Sprint(response.Trailer) != c.trailer {
				t.Errorf("%d %v %q %v %v", response.Status, response.Header, body, response.Trailer, err)
			}
			if head := <-seen; !strings.HasPrefix(head, c.method+" /x?y HTTP/1.1\r\nHost: a.com\r\nX-Own: 1\r\nX-Real-IP: 192.0.2.77\r\n") || strings.Contains(head, "X-Hop") {
				t.Errorf("%q", head)
			}
			want := []string(nil)
			if strings.Contains(c.answer, "103") {
				want = []string{"103 map[Link:[</a>]]"}
			}
			if !slices.Equal(interim, want) {
				t.Errorf("informational: %q", interim)
			}
			at := response.Outcome
			if !at.Asked || at.Status != c.status || at.Origin != "a" || at.Address.String() != o.Addr().String() || at.Attempts != 1 || at.Reused ||
				at.Bytes < int64(len(c.answer)-5) || at.Error != "" || at.Connect <= 0 || at.FirstByte <= 0 || at.Total < at.FirstByte || at.TLS != 0 {
				t.Errorf("%+v", at)
			}
			if ends {
				return
			}
			again, err := e.fetcher().Fetch(t.Context(), asking(c.method, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := copied(again); err != nil || !again.Outcome.Reused || again.Outcome.Connect != 0 {
				t.Errorf("%v %+v", err, again.Outcome)
			}
		})
	}
}

func TestFetchFailsAsAPageWould(t *testing.T) {
	good, _ := answering(t, okAnswer)
	silent := newRawOrigin(t, func(c net.Conn, _ int64) { io.Copy(io.Discard, c) })
	named := originAt("a", good.Addr().String())
	named.Address = "gone.test"
	at := func(address string) []*configv1.Origin { return []*configv1.Origin{originAt("a", address)} }
	for _, c := range []struct {
		name     string
		origins  []*configv1.Origin
		policy   *AddressPolicy
		group    string
		status   int
		code     string
		class    string
		attempts int
	}{
		{"refused", at(dead), loopbackPolicy(t), "", 502, "origin-unreachable", "connect_failed", 1},
		{"no response", at(silent.Addr().String()), loopbackPolicy(t), "", 504, "origin-timeout", "timeout", 1},
		{"nonsense", at(once(t, "nonsense\r\n\r\n").Addr().String()), loopbackPolicy(t), "", 502, "origin-unreachable", "connect_failed", 1},
		{"a forbidden address", at(good.Addr().String()), nil, "", 502, "no-origin", "address_forbidden", 1},
		{"no such name", []*configv1.Origin{named}, loopbackPolicy(t), "", 502, "no-origin", "dns_failed", 1},
		{"an empty group", at(good.Addr().String()), loopbackPolicy(t), "none", 502, "no-origin", "", 0},
		{"several origins", append(at(dead), originAt("b", dead)), loopbackPolicy(t), "", 502, "origin-unreachable", "connect_failed", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 50 }), c.origins...)
			e.transports.policy = func() *AddressPolicy { return c.policy }
			e.transports.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, &net.DNSError{IsNotFound: true} }
			r := asking("GET", "/", nil)
			r.Out.Group = c.group
			_, err := e.fetcher().Fetch(t.Context(), r)
			var failed *exchange.FetchError
			if !errors.As(err, &failed) || failed.Status != c.status || failed.Code != c.code || failed.Outcome.Error != c.class || failed.Outcome.Attempts != c.attempts {
				t.Errorf("%+v", failed)
			}
			if !strings.HasPrefix(err.Error(), c.code) {
				t.Error(err)
			}
		})
	}
}

func TestFetchGoesOnToTheNextOrigin(t *testing.T) {
	good, seen := answering(t, okAnswer)
	first := func(p *configv1.OriginPool) { p.Policy = configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN }
	for _, c := range []struct {
		name, first, method, class string
		body                       []byte
		attempts                   int
		status                     int
	}{
		{"refused", dead, "POST", "connect_failed", []byte("body"), 2, 200},
		{"closed", once(t, "").Addr().String(), "GET", "connect_failed", nil, 2, 200},
		{"closed after a POST", once(t, "").Addr().String(), "POST", "connect_failed", []byte("body"), 1, 0},
		{"a 503", once(t, "HTTP/1.1 503 Bad\r\nContent-Length: 0\r\n\r\n").Addr().String(), "PUT", "upstream_status", []byte("body"), 2, 200},
		{"a 503 after a POST", once(t, "HTTP/1.1 503 Bad\r\nContent-Length: 0\r\n\r\n").Addr().String(), "POST", "upstream_status", []byte("body"), 1, 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEdge(t, settings(first), originAt("a", c.first), originAt("b", good.Addr().String()))
			r := asking(c.method, "/", nil)
			r.Body = c.body
			response, err := e.fetcher().Fetch(t.Context(), r)
			if c.status == 0 {
				var failed *exchange.FetchError
				if !errors.As(err, &failed) || failed.Outcome.Attempts != c.attempts || failed.Outcome.Error != c.class {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := copied(response); err != nil || response.Status != c.status || response.Outcome.Attempts != c.attempts || response.Outcome.Error != c.class {
				t.Errorf("%v %+v", err, response.Outcome)
			}
			if c.status == 200 {
				if got := <-seen; response.Outcome.Origin != "b" || !strings.HasSuffix(got, "\r\n\r\n"+string(c.body)) {
					t.Errorf("%s got %q", response.Outcome.Origin, got)
				}
			}
		})
	}
}

// paused is an origin that sends a beginning, tells so, and the rest when it may.
func paused(t *testing.T, beginning, rest string) (o *rawOrigin, begun chan struct{}, goOn chan struct{}) {
	begun, goOn = make(chan struct{}, 100), make(chan struct{})
	o = newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			if _, _, err := readRequest(r); err != nil {
				return
			}
			io.WriteString(c, beginning)
			begun <- struct{}{}
			<-goOn
			io.WriteString(c, rest)
		}
	})
	return o, begun, goOn
}

// cancelling ends a context with the first bytes of a body.
type cancelling struct {
	gathered
	cancel context.CancelFunc
}

func (c *cancelling) Write(p []byte) error {
	c.cancel()
	return c.gathered.Write(p)
}

func TestTheEndOfItsContextEndsAFetch(t *testing.T) {
	o, begun, goOn := paused(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n", "")
	t.Cleanup(func() { close(goOn) })
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := e.fetcher().Fetch(ctx, asking("GET", "/", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("before the response: %v", err)
	}
	half, _, more := paused(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "")
	t.Cleanup(func() { close(more) })
	e.compile(settings(), originAt("a", half.Addr().String()))
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	response, err := e.fetcher().Fetch(ctx, asking("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	sink := &cancelling{cancel: cancel}
	err = response.Body.CopyTo(sink)
	response.Body.Close()
	if err == nil || sink.String() != "12345" || response.Outcome.Error != errorAborted {
		t.Errorf("within the body: %v %q %+v", err, sink, response.Outcome)
	}
	if e.transports.idle.Load() != 0 || e.state.failed.Load() != 0 {
		t.Error("a connection is kept, or the origin has failed")
	}
}

// refusing is a sink that takes nothing.
type refusing struct{}

var errNoRoom = errors.New("full")

func (refusing) Write([]byte) error { return errNoRoom }
func (refusing) Flush() error       { return nil }

func TestBodiesThatBreakOff(t *testing.T) {
	for _, c := range []struct{ name, answer string }{
		{"before its length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"},
		{"within chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"},
		{"with a chunk that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\nx\r\n"},
	} {
		e := newEdge(t, settings(), originAt("a", once(t, c.answer).Addr().String()))
		response, err := e.fetcher().Fetch(t.Context(), asking("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := copied(response); err == nil || body != "12345" || response.Outcome.Error != string(failConnect) {
			t.Errorf("%s: %q %v %+v", c.name, body, err, response.Outcome)
		}
		// A body that nobody takes ends its connection, too.
		if response, err = e.fetcher().Fetch(t.Context(), asking("GET", "/", nil)); err != nil {
			t.Fatal(err)
		}
		if err := response.Body.CopyTo(refusing{}); !errors.Is(err, errNoRoom) {
			t.Errorf("%s: %v", c.name, err)
		}
		response.Body.Close()
		if response.Outcome.Error != errorAborted || e.transports.idle.Load() != 0 {
			t.Errorf("%s: %+v", c.name, response.Outcome)
		}
	}
}

// fill is a response that several clients read while it comes.
type fill struct {
	mu      sync.Mutex
	changed sync.Cond
	begun   bool
	data    []byte
	done    chan struct{}
	ended   bool
	err     error
}

func newFill() *fill {
	f := &fill{done: make(chan struct{})}
	f.changed.L = &f.mu
	return f
}

func (f *fill) Write(p []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = append(f.data, p...)
	f.changed.Broadcast()
	return nil
}

func (f *fill) Flush() error { return nil }

// run fetches, whoever waits.
func (f *fill) run(t *testing.T, fetcher Fetcher, r *exchange.Request) {
	defer close(f.done)
	response, err := fetcher.Fetch(t.Context(), r)
	if err == nil {
		err = response.Body.CopyTo(f)
		response.Body.Close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.err = true, err
	f.changed.Broadcast()
}

// CopyTo is for one client.
func (f *fill) CopyTo(sink exchange.Sink) error {
	for at := 0; ; {
		f.mu.Lock()
		for len(f.data) == at && !f.ended {
			f.changed.Wait()
		}
		piece, ended, err := f.data[at:], f.ended, f.err
		f.mu.Unlock()
		if len(piece) == 0 && ended {
			return err
		}
		at += len(piece)
		if err := sink.Write(piece); err != nil {
			return err
		}
		if err := sink.Flush(); err != nil {
			return err
		}
	}
}

func (f *fill) Close() {}

// The client for which a response is fetched goes away in the middle; others read it whole, and the origin is asked once.
func TestAFetchOutlivesItsFirstClient(t *testing.T) {
	o, _, goOn := paused(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "67890")
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	shared := newFill()
	e.instead = func(x *exchange.Exchange) *exchange.Answer {
		shared.mu.Lock()
		if !shared.begun {
			shared.begun = true
			go shared.run(t, e.fetcher(), x.Detach())
		}
		shared.mu.Unlock()
		a := x.RespondFrom(exchange.FromCache, 200)
		a.Header["Content-Length"], a.Body = []string{"10"}, shared
		return a
	}
	get := func(ctx context.Context) *http.Response {
		r, _ := http.NewRequestWithContext(ctx, "GET", e.URL, nil)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	ctx, leave := context.WithCancel(t.Context())
	first := get(ctx)
	beginning := make([]byte, 5)
	if _, err := io.ReadFull(first.Body, beginning); err != nil || string(beginning) != "12345" {
		t.Fatalf("%q %v", beginning, err)
	}
	leave()
	others := []*http.Response{get(t.Context()), get(t.Context()), get(t.Context())}
	close(goOn)
	for _, other := range others {
		if all, err := io.ReadAll(other.Body); err != nil || string(all) != "1234567890" {
			t.Errorf("%q %v", all, err)
		}
	}
	<-shared.done
	if n := o.connections.Load(); n != 1 || shared.err != nil {
		t.Errorf("%d connections, %v", n, shared.err)
	}
}

// A client gets what is stored at once, while the origin is asked whether it is still good.
func TestARevalidationRunsInTheBackground(t *testing.T) {
	seen, goOn := make(chan string, 1), make(chan struct{})
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		head, _, _ := readRequest(bufio.NewReader(c))
		seen <- head
		<-goOn
		io.WriteString(c, "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n")
	})
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	revalidated := make(chan int, 1)
	e.instead = func(x *exchange.Exchange) *exchange.Answer {
		r := x.Detach()
		r.Out.Edits = append(r.Out.Edits, exchange.HeaderEdit{Name: "If-None-Match", Values: []string{`"e"`}})
		go func() {
			response, err := e.fetcher().Fetch(t.Context(), r)
			if err != nil {
				revalidated <- 0
				return
			}
			response.Body.Close()
			revalidated <- response.Status
		}()
		a := x.RespondFrom(exchange.FromCache, 200)
		a.Bytes = []byte("stored")
		return a
	}
	e.wantGet("/page", 200, "stored")
	if head := <-seen; !strings.HasPrefix(head, "GET /page HTTP/1.1\r\n") || !strings.Contains(head, "\r\nIf-None-Match: \"e\"\r\n") {
		t.Errorf("%q", head)
	}
	close(goOn)
	select {
	case status := <-revalidated:
		if status != 304 {
			t.Error(status)
		}
	case <-time.After(time.Minute):
		t.Error("the revalidation did not end")
	}
}

// What an exchange becomes after it was detached changes nothing of the request.
func TestADetachedRequestIsItsOwn(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	detached := make(chan *exchange.Request, 1)
	e.request = func(x *exchange.Exchange) {
		x.Out.Target = &exchange.Target{Raw: "/rewritten"}
		x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: "X-Edit", Values: []string{"1"}})
		detached <- x.Detach()
		x.In.Header.Set("X-Own", "later")
		x.Out.Target.Raw = "/later"
		x.Out.Edits[0] = exchange.HeaderEdit{Name: "X-Edit", Values: []string{"later"}}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", e.URL, nil)
	r.Header.Set("X-Own", "1")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	<-seen
	again, err := e.fetcher().Fetch(t.Context(), <-detached)
	if err != nil {
		t.Fatal(err)
	}
	again.Body.Close()
	if head := <-seen; !strings.HasPrefix(head, "GET /rewritten ") || !strings.Contains(head, "X-Own: 1\r\n") || !strings.Contains(head, "X-Edit: 1\r\n") {
		t.Errorf("%q", head)
	}
}
