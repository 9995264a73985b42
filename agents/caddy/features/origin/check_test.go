package origin

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestThresholdsOfChecks(t *testing.T) {
	for _, c := range []struct {
		name               string
		healthy, unhealthy uint32
		// Results of checks (+ passed, - failed), and what the origin is after each (u up, d down).
		results, states string
	}{
		{"one failure is enough", 1, 1, "+-+-", "udud"},
		{"it starts healthy, and needs the failures in a row", 2, 3, "--+--+---", "uuuuuuuud"},
		{"down, it needs the passes in a row", 2, 1, "-+-++", "ddddu"},
		{"a pass between failures starts again", 1, 2, "-+-+--", "uuuuud"},
		{"the highest thresholds", 10, 10, strings.Repeat("-", 10) + strings.Repeat("+", 10), strings.Repeat("u", 9) + strings.Repeat("d", 10) + "u"},
		{"up, it goes down as at first", 1, 3, "---+---", "uudu" + "uud"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdict
			states, before := "", false
			for _, result := range c.results {
				changed := v.add(result == '+', thresholds{c.healthy, c.unhealthy})
				if changed != (v.unhealthy != before) {
					t.Errorf("after %q it says that it changed: %v", states, changed)
				}
				before = v.unhealthy
				states += map[bool]string{false: "u", true: "d"}[v.unhealthy]
			}
			if states != c.states {
				t.Errorf("%q, not %q", states, c.states)
			}
		})
	}
}

func checkSettings(change ...func(*configv1.ActiveHealthCheck)) *configv1.ActiveHealthCheck {
	m := &configv1.ActiveHealthCheck{
		Path: "/up", ExpectedStatusMin: 200, ExpectedStatusMax: 399, IntervalSeconds: 30, TimeoutSeconds: 5,
		HealthyThreshold: 2, UnhealthyThreshold: 3,
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func TestHostOfChecks(t *testing.T) {
	for _, c := range []struct{ check, header, address, want string }{
		{"", "", "http://origin.example:80", "origin.example"},
		{"", "", "https://origin.example:443", "origin.example"},
		{"", "", "https://origin.example:80", "origin.example:80"},
		{"", "", "http://192.0.2.1:8080", "192.0.2.1:8080"},
		{"", "", "http://2001:db8::1:80", "[2001:db8::1]"},
		{"", "", "http://2001:db8::1:81", "[2001:db8::1]:81"},
		{"", "a.example", "http://origin.example:81", "a.example"},
		{"b.example:82", "a.example", "http://origin.example:81", "b.example:82"},
	} {
		scheme, address, _ := strings.Cut(c.address, "://")
		at := strings.LastIndexByte(address, ':')
		o := originAt("o", net.JoinHostPort(address[:at], address[at+1:]))
		o.Https, o.HostHeader = scheme == "https", c.header
		found, err := compileChecks("site", &configv1.Site{
			Origins: []*configv1.Origin{o},
			Pool: settings(func(p *configv1.OriginPool) {
				p.ActiveHealthCheck = checkSettings(func(m *configv1.ActiveHealthCheck) { m.Host = c.check })
			}),
		})
		if err != nil || found.list[0].key.host != c.want {
			t.Errorf("%+v: got %v %v", c, found, err)
		}
	}
}

func TestChecksThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*configv1.ActiveHealthCheck){
		"no path":                      func(m *configv1.ActiveHealthCheck) { m.Path = "" },
		"a path in two lines":          func(m *configv1.ActiveHealthCheck) { m.Path = "/\r\nX: y" },
		"a host in two lines":          func(m *configv1.ActiveHealthCheck) { m.Host = "a\r\nX: y" },
		"no interval":                  func(m *configv1.ActiveHealthCheck) { m.IntervalSeconds = 0 },
		"a timeout above the interval": func(m *configv1.ActiveHealthCheck) { m.TimeoutSeconds = 31 },
	} {
		_, err := compileChecks("site", &configv1.Site{Pool: settings(func(p *configv1.OriginPool) { p.ActiveHealthCheck = checkSettings(change) })})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	disabled := &configv1.Site{Disabled: true, Pool: settings(func(p *configv1.OriginPool) { p.ActiveHealthCheck = checkSettings() })}
	for _, m := range []*configv1.Site{disabled, {Pool: settings()}} {
		if found, err := compileChecks("site", m); found != nil || err != nil {
			t.Errorf("got %v %v", found, err)
		}
	}
}

// keyFor is a check of an address.
func keyFor(address string, change ...func(*checkKey)) checkKey {
	host, port, _ := net.SplitHostPort(address)
	addr := netip.MustParseAddrPort(net.JoinHostPort("127.0.0.1", port))
	key := checkKey{
		dial: newDialKey(host, addr.Port(), plain, ""), host: "check.example", path: "/up?deep=1", lowest: 200, highest: 399,
		interval: time.Minute, timeout: 20 * time.Second, thresholds: thresholds{1, 1},
	}
	for _, f := range change {
		f(&key)
	}
	return key
}

func overTLS(mode tlsMode, name string) func(*checkKey) {
	return func(k *checkKey) { k.dial = newDialKey(k.dial.host.Value(), k.dial.port, mode, name) }
}

func TestWhatChecksSay(t *testing.T) {
	respond := func(text string) string {
		return newRawOrigin(t, func(c net.Conn, _ int64) {
			if n, _ := c.Read(make([]byte, 4096)); n > 0 {
				io.WriteString(c, text)
			}
		}).Addr().String()
	}
	silent := newRawOrigin(t, func(c net.Conn, _ int64) { io.Copy(io.Discard, c) }).Addr().String()
	halfSent := newRawOrigin(t, func(c net.Conn, _ int64) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		io.Copy(io.Discard, c)
	}).Addr().String()
	large := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte("x"), 10*maxCheckRead)) })
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	t.Cleanup(secure.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())
	policy := loopbackPolicy(t)
	transports := NewTransportSet(func() *AddressPolicy { return policy })
	transports.TrustRoots(trusted)
	soon := func(k *checkKey) { k.timeout = 2 * time.Second }
	for _, c := range []struct {
		name   string
		key    checkKey
		status int
		class  failure
	}{
		{"a response in the range", keyFor(respond(okAnswer)), 200, ""},
		{"a redirect is a response and not followed", keyFor(respond("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")), 302, ""},
		{"a status above the range", keyFor(respond("HTTP/1.1 500 Bad\r\nContent-Length: 0\r\n\r\n")), 500, failStatus},
		{"a status below the range", keyFor(respond(okAnswer), func(k *checkKey) { k.lowest = 201 }), 200, failStatus},
		{"informational responses are passed over", keyFor(respond("HTTP/1.1 103 Early\r\n\r\n" + okAnswer)), 200, ""},
		{"informational responses without an end", keyFor(respond(strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 100))), 0, failConnect},
		{"HEAD has no body", keyFor(respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), func(k *checkKey) { k.head = true }), 200, ""},
		{"of a large body a part is read", keyFor(addressOf(large)), 200, ""},
		{"headers without an end", keyFor(respond("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxCheckRead))), 0, failConnect},
		{"no HTTP", keyFor(respond("SSH-2.0-x\r\n")), 0, failConnect},
		{"no response", keyFor(respond("")), 0, failConnect},
		{"a response that never comes", keyFor(silent, soon), 0, failTimeout},
		{"a body that never ends", keyFor(halfSent, soon), 200, failTimeout},
		{"no connection", keyFor(dead), 0, failConnect},
		{"no such name", keyFor(dead, func(k *checkKey) { k.dial = newDialKey("1.2.3", 80, plain, "") }), 0, failDNS},
		{"a certificate for the name", keyFor(addressOf(secure), overTLS(tlsVerified, "example.com")), 200, ""},
		{"a certificate for another name", keyFor(addressOf(secure), overTLS(tlsVerified, "other.test")), 0, failTLS},
		{"a certificate that is not verified", keyFor(addressOf(secure), overTLS(tlsUnverified, "other.test")), 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), c.key.timeout)
			defer cancel()
			status, err := transports.probe(ctx, &c.key, func(netip.Addr) error { return nil })
			var class failure
			if err != nil {
				class = classOf(err)
			}
			if status != c.status || class != c.class {
				t.Errorf("got %d %q (%v), not %d %q", status, class, err, c.status, c.class)
			}
		})
	}
}

func TestWhatChecksAsk(t *testing.T) {
	o, seen := answering(t, okAnswer)
	transports := NewTransportSet(func() *AddressPolicy { return loopbackPolicy(t) })
	key := keyFor(o.Addr().String())
	if _, err := transports.probe(deadline(t), &key, func(netip.Addr) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := "GET /up?deep=1 HTTP/1.1\r\nHost: check.example\r\nUser-Agent: svc-node-healthcheck/dev\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if got := <-seen; got != want {
		t.Errorf("got %q", got)
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The policy of addresses holds for checks, for literals and for what names resolve to.
func TestForbiddenAddressesAreNotChecked(t *testing.T) {
	o := newRawOrigin(t, func(net.Conn, int64) {})
	transports := NewTransportSet(func() *AddressPolicy { return nil })
	transports.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")}, nil
	}
	for _, host := range []string{"127.0.0.1", "::ffff:127.0.0.1", "inside.example", "localhost"} {
		key := keyFor(o.Addr().String(), func(k *checkKey) { k.dial = newDialKey(host, k.dial.port, plain, "") })
		_, err := transports.probe(deadline(t), &key, func(addr netip.Addr) error {
			t.Errorf("%s: %s is about to be dialed", host, addr)
			return nil
		})
		if err == nil || classOf(err) != failForbidden {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if n := o.connections.Load(); n > 0 {
		t.Errorf("%d connections came", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	o := newRawOrigin(b, func(c net.Conn, _ int64) {
		if n, _ := c.Read(make([]byte, 4096)); n > 0 {
			io.WriteString(c, okAnswer)
		}
	})
	transports := NewTransportSet(func() *AddressPolicy { return loopbackPolicy(b) })
	key := keyFor(o.Addr().String())
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		if _, err := transports.probe(ctx, &key, func(netip.Addr) error { return nil }); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
}
