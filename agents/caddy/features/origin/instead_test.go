package origin

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// calling is an origin that answers with its name, in a group.
func calling(t testing.TB, name, group string, change ...func(*configv1.Origin)) *configv1.Origin {
	o := originAt(name, addressOf(httpOrigin(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+" "+r.Host) })))
	o.Group = group
	for _, f := range change {
		f(o)
	}
	return o
}

func backup(o *configv1.Origin) { o.Backup = true }

func portOf(s net.Listener) uint16 { return uint16(s.Addr().(*net.TCPAddr).Port) }

// Both clients to origins heed what rules say of the way.
func bothClients(t *testing.T, test func(t *testing.T, second bool)) {
	t.Run("own client", func(t *testing.T) { test(t, false) })
	t.Run("second client", func(t *testing.T) { test(t, true) })
}

func TestGroupsOfOrigins(t *testing.T) {
	down := func(o *configv1.Origin) { o.Address, o.Port = "127.0.0.1", 1 }
	for _, c := range []struct {
		name, group string
		origins     []*configv1.Origin
		// The beginning of the answers to four requests, which are of different origins or the same.
		want string
	}{
		{"the default group", "", []*configv1.Origin{calling(t, "a", ""), calling(t, "b", "blue"), calling(t, "c", "")}, "acac"},
		{"another one", "blue", []*configv1.Origin{calling(t, "a", ""), calling(t, "b", "blue"), calling(t, "c", "green"), calling(t, "d", "blue")}, "bdbd"},
		{"its backups are its own", "blue", []*configv1.Origin{calling(t, "a", ""), calling(t, "b", "blue", down), calling(t, "c", "", backup), calling(t, "d", "blue", backup), calling(t, "e", "blue", backup)}, "eded"},
		{"those of the default group are not another's", "", []*configv1.Origin{calling(t, "a", ""), calling(t, "b", "blue", backup)}, "aaaa"},
		{"one that does not exist", "red", []*configv1.Origin{calling(t, "a", ""), calling(t, "b", "blue")}, "eeee"},
		{"the default group is empty", "", []*configv1.Origin{calling(t, "b", "blue")}, "eeee"},
		{"nothing at all", "blue", nil, "eeee"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 1 }), c.origins...)
			e.request = func(x *exchange.Exchange) { x.Out.Group = c.group }
			if strings.Contains(c.name, "backups") {
				// The primary is found to be down, by a request that a backup serves.
				e.get("/")
			}
			got := ""
			for range 4 {
				status, body := e.get("/")
				if body == "edge: no-origin" && status != 502 {
					t.Errorf("%d %s", status, body)
				}
				got += body[:1]
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// An origin that is down in one group says nothing of others, nor of the turns there.
func TestGroupsDoNotShareTurns(t *testing.T) {
	e := newEdge(t, settings(), calling(t, "a", ""), calling(t, "b", ""), calling(t, "c", "blue"), calling(t, "d", "blue"))
	got := ""
	for i := range 8 {
		e.request = func(x *exchange.Exchange) { x.Out.Group = []string{"", "blue"}[i%2] }
		_, body := e.get("/")
		got += body[:1]
	}
	if got != "acbdacbd" {
		t.Errorf("got %s", got)
	}
}

func TestHostHeaderOfARule(t *testing.T) {
	for _, c := range []struct{ own, rule, out, want string }{
		{"", "", "", "asked.test:8082"},
		{"own.test", "", "", "own.test"},
		{"own.test", "rule.test:8080", "", "rule.test:8080"},
		{"", "rule.test", "", "rule.test"},
		{"", "", "Out.Test", "out.test"},
		{"", "rule.test", "out.test", "rule.test"},
		{"own.test", "", "out.test", "own.test"},
		{"own.test", "[2001:db8::1]:8443", "", "[2001:db8::1]:8443"},
	} {
		e := newEdge(t, settings(), calling(t, "a", "", func(o *configv1.Origin) { o.HostHeader = c.own }))
		e.request = func(x *exchange.Exchange) {
			x.In.HostRaw, x.Out.HostHeader, x.Out.Host = "Asked.test:8082", c.rule, c.out
		}
		e.wantGet("/", 200, "a "+c.want)
	}
	e := newEdge(t, settings(), calling(t, "a", ""))
	for _, bad := range []string{"a b", "a\r\nX: y", "a/b", "a\\b", "\x00"} {
		e.request = func(x *exchange.Exchange) { x.Out.HostHeader = bad }
		e.wantGet("/", 502, "edge: no-origin")
	}
}

// A rule's port is that of every origin of the group, and another server: connections, health and the address policy are
// of what is dialled.
func TestPortOfARule(t *testing.T) {
	bothClients(t, func(t *testing.T, second bool) {
		serve := func(name string) net.Listener {
			h := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) }
			if second {
				return h2cOrigin(t, h).Listener
			}
			return httpOrigin(t, h).Listener
		}
		own, other := serve("own"), serve("other")
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 1 }), originAt("a", own.Addr().String()), originAt("b", own.Addr().String()))
		if second {
			e.shared = NewShared(e.transports)
			t.Cleanup(e.shared.CloseIdle)
		}
		port := uint16(0)
		e.request = func(x *exchange.Exchange) { x.Out.Port = port }
		for range 2 {
			port = 0
			e.wantGet("/", 200, "own")
			port = portOf(other)
			e.wantGet("/", 200, "other")
			e.wantGet("/", 200, "other")
			port = portOf(own)
			e.wantGet("/", 200, "own")
		}
		port = 1
		for range 3 {
			e.wantGet("/", 502, "edge: origin-unreachable")
		}
		now := time.Now()
		p := e.pool.Load()
		for i := range p.origins {
			o := &p.origins[i]
			if e.state.down(o.health, now) {
				t.Error("the origin's own port is down with a rule's")
			}
			if !e.state.down((&instead{port: 1}).healthOf(o), now) {
				t.Error("the rule's port is up")
			}
			if (&instead{port: portOf(own)}).healthOf(o) != o.health {
				t.Error("the same port is another server")
			}
		}
		port = 0
		e.wantGet("/", 200, "own")
		port = portOf(other)
		e.transports.policy = func() *AddressPolicy { return nil }
		e.wantGet("/", 502, "edge: no-origin")
	})
}

// tlsNames is an origin that answers with the server name that was asked for, and counts connections.
func tlsNames(t *testing.T, protocol string) (o *configv1.Origin, connections func() int) {
	var mu sync.Mutex
	count := 0
	certificate := httpTLS(t, http.NotFoundHandler()).TLS.Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS.ServerName, " ", r.Host) }),
		TLSConfig: &tls.Config{Certificates: certificate, NextProtos: []string{protocol}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			mu.Lock()
			defer mu.Unlock()
			count++
			return nil, nil
		}},
	}
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	o = originAt("a", listener.Addr().String())
	o.Https = true
	return o, func() int { mu.Lock(); defer mu.Unlock(); return count }
}

func TestServerNameOfARule(t *testing.T) {
	bothClients(t, func(t *testing.T, second bool) {
		protocol := "http/1.1"
		if second {
			protocol = "h2"
		}
		for _, c := range []struct{ own, ownHost, sni, host, want string }{
			{"", "", "", "", " 127.0.0.1"},
			{"own.test", "", "", "", "own.test 127.0.0.1"},
			{"own.test", "", "Rule.Test.", "", "rule.test 127.0.0.1"},
			{"", "", "rule.test", "", "rule.test 127.0.0.1"},
			{"", "host.test", "", "", "host.test host.test"},
			{"", "host.test", "", "rule.test:8443", "rule.test rule.test:8443"},
			{"own.test", "", "", "rule.test", "own.test rule.test"},
			{"", "", "sni.test", "rule.test", "sni.test rule.test"},
		} {
			o, connections := tlsNames(t, protocol)
			o.Sni, o.HostHeader = c.own, c.ownHost
			e := newEdge(t, settings(func(p *configv1.OriginPool) { p.TlsVerify = false }), o)
			if second {
				e.shared = NewShared(e.transports)
				t.Cleanup(e.shared.CloseIdle)
			}
			e.request = func(x *exchange.Exchange) { x.Out.SNI, x.Out.HostHeader = c.sni, c.host }
			for range 3 {
				e.wantGet("/", 200, strings.Replace(c.want, "127.0.0.1", e.Listener.Addr().String(), 1))
			}
			if n := connections(); n != 1 {
				t.Errorf("%+v: %d connections", c, n)
			}
			// A connection of one name is not another's.
			e.request = func(x *exchange.Exchange) { x.Out.SNI = "third.test" }
			if _, body := e.get("/"); !strings.HasPrefix(body, "third.test ") || connections() != 2 {
				t.Errorf("%+v: %s, %d connections", c, body, connections())
			}
		}
	})
}

// Each try of a request has the server name and the host of its origin, and those of one origin never reach another.
func TestEveryTryHasNamesOfItsOwn(t *testing.T) {
	bothClients(t, func(t *testing.T, second bool) {
		var mu sync.Mutex
		var got []string
		named := func(sni, host string, status int) *configv1.Origin {
			s := httpTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.TLS.ServerName+" "+r.Host)
				w.WriteHeader(status)
			}))
			o := originAt(sni+host, addressOf(s))
			o.Https, o.Sni, o.HostHeader = true, sni, host
			return o
		}
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.TlsVerify = false }),
			named("one.test", "host-one.test", 503), named("", "xn--mnchen-3ya.test:8443", 503), named("three.test", "", 200))
		if second {
			e.shared = NewShared(e.transports)
			t.Cleanup(e.shared.CloseIdle)
		}
		want := []string{"one.test host-one.test", "xn--mnchen-3ya.test xn--mnchen-3ya.test:8443", "three.test " + e.Listener.Addr().String()}
		if status, _ := e.get("/"); status != 200 || !slices.Equal(got, want) {
			t.Errorf("%d after %q, not %q", status, got, want)
		}
	})
}

// A name that the origin has no certificate for is the rule's mistake, and takes the origin from nobody else.
func TestServerNameThatFailsIsTheRules(t *testing.T) {
	s := httpTLS(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	o := originAt("a", addressOf(s))
	o.Https, o.Sni = true, "example.com"
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.MaxFails = 1 }), o)
	e.transports.TrustRoots(s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	e.wantGet("/", 200, "ok")
	e.request = func(x *exchange.Exchange) { x.Out.SNI = "wrong.test" }
	e.wantGet("/", 502, "edge: origin-unreachable")
	own := &e.pool.Load().origins[0]
	if e.state.down(own.health, time.Now()) {
		t.Error("the origin is down")
	}
	e.request = nil
	e.wantGet("/", 200, "ok")
}

func TestLimitsOfARule(t *testing.T) {
	post := func(e *edge, body string) (int, string) { return e.send("POST", "/", strings.NewReader(body)) }
	reading := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, strconv.Itoa(len(body)))
	})
	for _, c := range []struct {
		site, rule uint64
		set        bool
		size       int
		status     int
	}{
		{10, 0, false, 10, 200}, {10, 0, false, 11, 413}, {10, 20, true, 20, 200}, {10, 20, true, 21, 413}, {10, 5, true, 6, 413},
		{10, 0, true, 200_000, 200}, {0, 5, true, 6, 413}, {10, 1 << 63, true, 11, 200},
	} {
		e := newEdge(t, settings(), originAt("a", addressOf(reading)))
		e.pool.Load().bodyLimit = int64(c.site)
		e.request = func(x *exchange.Exchange) { x.Overrides.BodyLimit, x.Overrides.HasBodyLimit = c.rule, c.set }
		if status, body := post(e, strings.Repeat("x", c.size)); status != c.status {
			t.Errorf("%+v: %d %s", c, status, body)
		}
		if status, body := e.send("POST", "/", unknownLength{strings.NewReader(strings.Repeat("x", c.size))}); status != c.status {
			t.Errorf("%+v, of unknown length: %d %s", c, status, body)
		}
	}
}

func TestTimesOfARule(t *testing.T) {
	bothClients(t, func(t *testing.T, second bool) {
		stop := make(chan struct{})
		silent := func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}
		serve := httpOrigin
		if second {
			serve = h2cOrigin
		}
		o := serve(t, silent)
		defer close(stop)
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Tries = 1 }), originAt("a", addressOf(o)))
		if second {
			e.shared = NewShared(e.transports)
			t.Cleanup(e.shared.CloseIdle)
		}
		e.request = func(x *exchange.Exchange) { x.Overrides.ReadTimeout = 50 * time.Millisecond }
		e.wantGet("/", 504, "edge: origin-timeout")
	})
	for _, c := range []struct{ site, rule, want times }{
		{times{1, 2, 3}, times{}, times{1, 2, 3}},
		{times{1, 2, 3}, times{connect: 9}, times{9, 2, 3}},
		{times{1, 2, 3}, times{send: 9}, times{1, 9, 3}},
		{times{1, 2, 3}, times{4, 5, 6}, times{4, 5, 6}},
	} {
		o := exchange.Overrides{ConnectTimeout: c.rule.connect, SendTimeout: c.rule.send, ReadTimeout: c.rule.read}
		if got := c.site.with(&o); got != c.want {
			t.Errorf("%v with %v: %v", c.site, c.rule, got)
		}
	}
}

// A handshake that is never answered takes as long as the rule says, not as long as the site.
func TestTimeToConnectOfARule(t *testing.T) {
	o := newRawOrigin(t, func(c net.Conn, _ int64) { io.Copy(io.Discard, c) })
	at := originAt("a", o.Addr().String())
	at.Https = true
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ConnectTimeoutMs, p.Tries = 120_000, 1 }), at)
	e.request = func(x *exchange.Exchange) { x.Overrides.ConnectTimeout = 100 * time.Millisecond }
	e.wantGet("/", 504, "edge: origin-timeout")
}

func TestWebSocketsByRule(t *testing.T) {
	for _, c := range []struct {
		site   bool
		rule   exchange.Switch
		status int
	}{
		{true, exchange.Unset, 101}, {false, exchange.Unset, 403}, {false, exchange.On, 101}, {true, exchange.Off, 403},
	} {
		o, _ := echoing(t, accepted)
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.Websocket = c.site }), originAt("a", o.Addr().String()))
		e.request = func(x *exchange.Exchange) { x.Overrides.WebSocket = c.rule }
		if _, _, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n"); res.StatusCode != c.status {
			t.Errorf("%+v: %d", c, res.StatusCode)
		}
	}
}

// The times of a site say nothing of its WebSockets; those of a rule do.
func TestTimesOfWebSockets(t *testing.T) {
	o, _ := echoing(t, accepted)
	e := newEdge(t, settings(func(p *configv1.OriginPool) { p.ReadTimeoutMs, p.SendTimeoutMs = 100, 100 }), originAt("a", o.Addr().String()))
	say := func(c net.Conn, r io.ByteReader) {
		t.Helper()
		io.WriteString(c, "x")
		if b, err := r.ReadByte(); b != 'x' || err != nil {
			t.Fatalf("got %q %v", b, err)
		}
	}
	c, r, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n")
	if res.StatusCode != 101 {
		t.Fatal(res.StatusCode)
	}
	say(c, r)
	// Another that is open for three times as long as the site's times outlasts them.
	e.request = func(x *exchange.Exchange) { x.Overrides.ReadTimeout = 300 * time.Millisecond }
	bounded, bytes, res := open(t, e, "GET / HTTP/1.1\r\nHost: a\r\n"+handshake+"\r\n")
	if res.StatusCode != 101 {
		t.Fatal(res.StatusCode)
	}
	say(bounded, bytes)
	if rest, err := io.ReadAll(bytes); err != nil || len(rest) != 0 {
		t.Fatalf("the one with a rule: %q %v", rest, err)
	}
	say(c, r)
}

// What a rule says of the edge's own fields is what the origin gets, once; the framing of the request is nobody's to change.
func TestEditsOfFieldsThatTheEdgeSets(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	e.request = func(x *exchange.Exchange) {
		for _, name := range []string{"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Request-Id", "Forwarded"} {
			x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: name, Values: []string{"rule"}})
		}
		for _, name := range []string{"Connection", "Content-Length", "Transfer-Encoding", "Host", "Te", "Cdn-Loop", "X-Svc-Site", "Upgrade", "Expect"} {
			x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: name, Values: []string{"framing"}})
		}
	}
	e.wantGet("/", 200, "ok")
	head := strings.ToLower(<-seen)
	for _, name := range []string{"x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-request-id", "forwarded"} {
		if strings.Count(head, "\r\n"+name+": ") != 1 || !strings.Contains(head, "\r\n"+name+": rule\r\n") {
			t.Errorf("%s in %q", name, head)
		}
	}
	if strings.Contains(head, "framing") {
		t.Errorf("%q", head)
	}
}

// What rules say of the way of a request costs no memory.
func TestWaysCostNoMemory(t *testing.T) {
	p, err := Compile("site", []*configv1.Origin{originAt("a", "192.0.2.1:80"),
		{Id: "c", Address: "192.0.2.3", Port: 443, Https: true, Group: "blue"}}, settings(), NewState())
	if err != nil {
		t.Fatal(err)
	}
	list := make([]int32, 0, 8)
	for name, out := range map[string]exchange.Outbound{
		"nothing": {}, "a group": {Group: "blue"}, "a port": {Port: 81}, "all of it": {Group: "blue", Port: 444, SNI: "sni.test", HostHeader: "host.test"},
	} {
		f := &fetch{x: &exchange.Exchange{Out: out}}
		way := func() {
			f.instead = instead{}
			if err := f.instead.read(&f.x.Out); err != nil {
				t.Fatal(err)
			}
			g := p.groupNamed(f.x.Out.Group)
			list = g.candidates(list, "", &f.instead, -1)
			f.dialled(&g.origins[list[0]])
		}
		way()
		// A name that somebody uses is there once.
		inUse := f.instead
		if n := testing.AllocsPerRun(100, way); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		runtime.KeepAlive(inUse)
	}
}
