package origin

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// frames is the side of an origin of a connection of HTTP/2, as a script.
type frames struct {
	*http2.Framer
	conn   net.Conn
	bodies map[uint32]string
}

// framedOrigin hands each connection over once SETTINGS were exchanged.
func framedOrigin(t testing.TB, serve func(f *frames, number int64)) *rawOrigin {
	return newRawOrigin(t, func(c net.Conn, number int64) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := &frames{http2.NewFramer(c, c), c, map[uint32]string{}}
		_ = f.WriteSettings()
		serve(f, number)
	})
}

// request reads up to the end of a request and returns its stream, 0 for the end of the connection.
func (f *frames) request() uint32 {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return 0
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if frame.StreamEnded() {
				return frame.StreamID
			}
		case *http2.DataFrame:
			f.bodies[frame.StreamID] += string(frame.Data())
			if frame.StreamEnded() {
				return frame.StreamID
			}
		}
	}
}

func (f *frames) respond(stream uint32, body string) {
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = f.WriteData(stream, true, []byte(body))
}

func (f *frames) respondToAll() {
	for stream := f.request(); stream != 0; stream = f.request() {
		f.respond(stream, "ok "+f.bodies[stream])
	}
}

func (e *edge) post(path, body string) (int, string) {
	e.t.Helper()
	// Of unknown length, as streams are.
	res, err := http.Post(e.URL+path, "text/plain", io.MultiReader(strings.NewReader(body)))
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return res.StatusCode, string(all)
}

// What an origin says it did not process goes out again, also a POST whose body has gone out already.
func TestUnprocessedRequestsGoOutAgain(t *testing.T) {
	for name, refuse := range map[string]func(f *frames, stream uint32){
		"a refused stream": func(f *frames, stream uint32) {
			_ = f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			f.respondToAll()
		},
		"GOAWAY": func(f *frames, stream uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil); f.request() },
	} {
		t.Run(name, func(t *testing.T) {
			var refused atomic.Bool
			o := framedOrigin(t, func(f *frames, _ int64) {
				stream := f.request()
				if stream != 0 && refused.CompareAndSwap(false, true) {
					refuse(f, stream)
					return
				}
				f.respond(stream, "ok "+f.bodies[stream])
				f.respondToAll()
			})
			e := newSharedEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = 1 }), originAt("a", o.Addr().String()))
			if status, body := e.post("/", "a body"); status != 200 || body != "ok a body" {
				t.Errorf("%d %s", status, body)
			}
			if e.state.failed.Load() != 0 {
				t.Error("the origin counts as a failed one")
			}
		})
	}
}

func TestOriginsThatAlwaysRefuseFail(t *testing.T) {
	o := framedOrigin(t, func(f *frames, _ int64) {
		for stream := f.request(); stream != 0; stream = f.request() {
			_ = f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}
	})
	good := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	alone := newSharedEdge(t, settings(), originAt("a", o.Addr().String()))
	if status, body := alone.post("/", "x"); status != 502 || body != "edge: origin-unreachable" {
		t.Errorf("%d %s", status, body)
	}
	both := newSharedEdge(t, settings(), originAt("a", o.Addr().String()), originAt("b", addressOf(good)))
	for range 4 {
		if status, body := both.post("/", "x"); status != 200 || body != "x" {
			t.Errorf("%d %s", status, body)
		}
	}
}

// A POST that an origin may have seen does not go out again.
func TestSharedRequestsThatMayHaveArrivedDoNotGoOutAgain(t *testing.T) {
	o := framedOrigin(t, func(f *frames, _ int64) {
		if stream := f.request(); stream != 0 {
			_ = f.WriteRSTStream(stream, http2.ErrCodeInternal)
			f.respondToAll()
		}
	})
	e := newSharedEdge(t, settings(), originAt("a", o.Addr().String()), originAt("b", dead))
	if status, body := e.post("/", "x"); status != 502 {
		t.Errorf("%d %s", status, body)
	}
}

// A kept connection that the origin closed is no failure of it.
func TestClosedSharedConnectionsAreNoFailure(t *testing.T) {
	o := framedOrigin(t, func(f *frames, number int64) {
		stream := f.request()
		f.respond(stream, "ok ")
		if number > 1 {
			f.respondToAll()
			return
		}
		// It ends with the next request.
		f.request()
	})
	e := newSharedEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = 1 }), originAt("a", o.Addr().String()))
	for range 3 {
		e.wantGet("/", 200, "ok ")
	}
	if o.connections.Load() != 2 || e.state.failed.Load() != 0 {
		t.Errorf("%d connections, %d failed", o.connections.Load(), e.state.failed.Load())
	}
}

// limitedOrigin takes so many streams a connection. Each request waits until release is closed.
func limitedOrigin(t *testing.T, streams int, release chan struct{}) (s *httptest.Server, connections, open *atomic.Int64) {
	connections, open = new(atomic.Int64), new(atomic.Int64)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		open.Add(1)
		<-release
		io.WriteString(w, "ok")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, connections, open
}

func TestRequestsThatComeTogetherShareAConnection(t *testing.T) {
	release := make(chan struct{})
	s, connections, open := limitedOrigin(t, 250, release)
	e := newSharedEdge(t, settings(), originAt("a", addressOf(s)))
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() { e.wantGet("/", 200, "ok") })
	}
	until(t, "all are under way", func() bool { return open.Load() == 40 })
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	close(release)
	all.Wait()
}

func TestLimitOfStreamsIsRespected(t *testing.T) {
	release := make(chan struct{})
	s, connections, open := limitedOrigin(t, 2, release)
	e := newSharedEdge(t, settings(), originAt("a", addressOf(s)))
	var all sync.WaitGroup
	for range 11 {
		all.Go(func() { e.wantGet("/", 200, "ok") })
	}
	until(t, "all are under way", func() bool { return open.Load() == 11 })
	if n := connections.Load(); n < 6 {
		t.Errorf("%d connections", n)
	}
	close(release)
	all.Wait()
	if e.state.failed.Load() != 0 {
		t.Error("the origin counts as a failed one")
	}
}

// Requests to one origin are as many as connections might be, however few connections carry them.
func TestSharedRequestsAreCapped(t *testing.T) {
	release := make(chan struct{})
	s, _, open := limitedOrigin(t, 250, release)
	e := newSharedEdge(t, settings(func(p *configv1.OriginPool) { p.ConnectTimeoutMs = 300 }), originAt("a", addressOf(s)))
	c := &e.transports.capacity
	c.most = 3
	var all sync.WaitGroup
	var served, refused atomic.Int64
	for range 5 {
		all.Go(func() {
			switch status, body := e.get("/"); {
			case status == 200:
				served.Add(1)
			case body == "edge: origin-busy":
				refused.Add(1)
			}
		})
	}
	until(t, "two are refused", func() bool { return refused.Load() == 2 })
	if open.Load() != 3 {
		t.Errorf("%d under way", open.Load())
	}
	close(release)
	all.Wait()
	if served.Load() != 3 || c.inUse.Load() != 0 {
		t.Errorf("%d served, %d in use", served.Load(), c.inUse.Load())
	}
}

func TestSharedConnectionsEnd(t *testing.T) {
	connectionsFor := func(change func(*configv1.OriginPool)) (*edge, *atomic.Int64) {
		release := make(chan struct{})
		close(release)
		s, connections, _ := limitedOrigin(t, 250, release)
		return newSharedEdge(t, settings(change), originAt("a", addressOf(s))), connections
	}
	for name, change := range map[string]func(*configv1.OriginPool){
		"after as many requests as the site allows": func(p *configv1.OriginPool) { p.KeepaliveMaxRequests = 1 },
		"with each request":                         func(p *configv1.OriginPool) { p.Keepalive = false },
	} {
		e, connections := connectionsFor(change)
		for range 3 {
			e.wantGet("/", 200, "ok")
		}
		if connections.Load() != 3 || len(e.shared.open) != 0 {
			t.Errorf("%s: %d connections, %d kept", name, connections.Load(), len(e.shared.open))
		}
	}
	e, connections := connectionsFor(func(*configv1.OriginPool) {})
	e.wantGet("/", 200, "ok")
	e.shared.mu.Lock()
	for _, list := range e.shared.open {
		list[0].idleUntil = time.Now().Add(-time.Second)
	}
	e.shared.mu.Unlock()
	e.shared.sweep()
	if len(e.shared.open) != 0 {
		t.Error("an idle connection is kept")
	}
	e.wantGet("/", 200, "ok")
	if connections.Load() != 2 {
		t.Errorf("%d connections", connections.Load())
	}
}

// An HTTPS origin has to choose h2: there is no way back to HTTP/1.1.
func TestSecondClientChoosesByALPN(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.TLS.ServerName) }))
		s.EnableHTTP2 = http2
		s.Config.ErrorLog = nil
		s.StartTLS()
		t.Cleanup(s.Close)
		o := originAt("a", addressOf(s))
		o.Https, o.Sni = true, "origin.test"
		e := newSharedEdge(t, settings(func(p *configv1.OriginPool) { p.TlsVerify = false }), o)
		if http2 {
			e.wantGet("/", 200, "HTTP/2.0 origin.test")
		} else {
			e.wantGet("/", 502, "edge: origin-unreachable")
		}
	}
}

func TestSharedRequestsAreAsTheClientSentThem(t *testing.T) {
	o := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q", r.Host, r.RequestURI, r.Header["User-Agent"])
	})
	e := newSharedEdge(t, settings(), originAt("a", addressOf(o)))
	for _, path := range []string{"/", "//b.test/x?y=1", "/?", "/a%2fb?c=%zz?d", "/a:b"} {
		answer := e.raw("GET " + path + " HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
		if want := fmt.Sprintf("a.test %s []", path); !strings.HasSuffix(answer, want) {
			t.Errorf("%s: no %s in %s", path, want, answer)
		}
	}
}

func TestChecksOverHTTP2(t *testing.T) {
	o := h2cOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"check.example/up?deep=1 GET": 200, "check.example/head HEAD": 204}[r.Host+r.RequestURI+" "+r.Method])
	})
	own, _ := answering(t, okAnswer)
	transports := NewTransportSet(func() *AddressPolicy { return loopbackPolicy(t) })
	shared := func(k *checkKey) { k.http2 = true }
	for _, c := range []struct {
		name, address string
		change        func(*checkKey)
		good          bool
	}{
		{"GET", addressOf(o), func(*checkKey) {}, true},
		{"HEAD", addressOf(o), func(k *checkKey) { k.path, k.head = "/head", true }, true},
		{"another status", addressOf(o), func(k *checkKey) { k.lowest = 201 }, false},
		{"an origin of HTTP/1.1", own.Addr().String(), func(*checkKey) {}, false},
	} {
		key := keyFor(c.address, shared, c.change)
		status, err := transports.probe(deadline(t), &key, func(netip.Addr) error { return nil })
		if (err == nil) != c.good {
			t.Errorf("%s: %d %v", c.name, status, err)
		}
	}
}

// An origin that hangs on a connection that was used before has had its time: the request does not go out to it again.
func TestSharedRequestsHangOnce(t *testing.T) {
	var asked atomic.Int64
	o := framedOrigin(t, func(f *frames, _ int64) {
		f.respond(f.request(), "ok ")
		for f.request() != 0 {
			asked.Add(1)
		}
	})
	e := newSharedEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs = 100 }), originAt("a", o.Addr().String()))
	e.wantGet("/", 200, "ok ")
	e.wantGet("/", 504, "edge: origin-timeout")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// Informational responses go on to clients, and the origin's own 100 (Continue) does not.
func TestSharedInterimResponses(t *testing.T) {
	o := framedOrigin(t, func(f *frames, _ int64) {
		stream := f.request()
		var block bytes.Buffer
		hpackOf := hpack.NewEncoder(&block)
		for _, fields := range [][]string{{":status", "100"}, {":status", "103", "link", "</a>"}} {
			block.Reset()
			for i := 0; i < len(fields); i += 2 {
				_ = hpackOf.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		}
		f.respond(stream, "ok")
	})
	e := newSharedEdge(t, settings(), originAt("a", o.Addr().String()))
	answer := e.raw("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n") {
		t.Error(answer)
	}
}
