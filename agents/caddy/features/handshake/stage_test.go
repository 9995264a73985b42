package handshake

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// asked is an exchange whose site is known; without a handshake it came in plain.
func (n *node) asked(host, target string, h *exchange.Handshake) *exchange.Exchange {
	x := new(exchange.Exchange)
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = host
	x.Begin(httptest.NewRecorder(), r)
	x.Tables = n.core.Tables()
	x.In.Host, _ = core.NormalizeHost(host)
	x.Plan = core.PlanOfHost(x.Tables, x.In.Host)
	if x.In.Handshake = h; h != nil {
		x.In.TLS, x.In.Scheme = &tls.ConnectionState{ServerName: h.ServerName}, "https"
	}
	return x
}

func TestRequestsForAnotherName(t *testing.T) {
	n := newNode(t, t.TempDir())
	n.serve("a", nil, []*pair{issue(t, ecdsaKey(t), "a.test", "b.test")}, "a.test", "b.test")
	n.change(siteEntry("c", "c.test"))
	for _, c := range []struct {
		name, host string
		handshake  *exchange.Handshake
		refused    bool
	}{
		{"plain", "a.test", nil, false},
		{"the same", "A.test:443", &exchange.Handshake{ServerName: "a.test", SiteID: "a"}, false},
		{"another of the site", "b.test", &exchange.Handshake{ServerName: "a.test", SiteID: "a"}, true},
		{"another site's", "c.test", &exchange.Handshake{ServerName: "a.test", SiteID: "a"}, true},
		{"nobody's", "x.test", &exchange.Handshake{ServerName: "a.test", SiteID: "a"}, true},
		{"no name", "", &exchange.Handshake{ServerName: "a.test", SiteID: "a"}, true},
		{"another site has it now", "c.test", &exchange.Handshake{ServerName: "c.test", SiteID: "a"}, true},
		{"the node's own", "a.test", &exchange.Handshake{Health: true}, true},
		{"the node's own by its name", "health.svc.invalid", &exchange.Handshake{ServerName: "health.svc.invalid", Health: true}, true},
	} {
		a := SameName(n.core)(n.asked(c.host, "/", c.handshake))
		if (a != nil) != c.refused {
			t.Errorf("%s: %+v", c.name, a)
		}
		if a != nil && (a.Status != 421 || a.Code != "sni-host-mismatch") {
			t.Errorf("%s: %d %s", c.name, a.Status, a.Code)
		}
	}
}

func TestForcingHTTPS(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	n.serve("set", func(m *configv1.SiteHttps) {
		m.ForceHttps = &configv1.HttpsRedirect{Status: 308, Port: 8443, Excluded: []*configv1.Domain{edgetest.Domain("plain.test")}}
		m.Pending = []*configv1.Domain{edgetest.Domain("pending.test")}
	}, []*pair{own}, "set.test", "plain.test", "pending.test")
	n.serve("unset", nil, []*pair{own}, "unset.test")
	n.serve("strict", func(m *configv1.SiteHttps) {
		m.ClientCertificates = &configv1.ClientCertificates{
			Mode: configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_REQUIRED, Authorities: [][]byte{authority().Raw}, Depth: 1,
		}
	}, []*pair{own}, "strict.test")
	ports := edgetest.Site(0, "ports.test")
	ports.HttpsPorts = []uint32{8444}
	n.serve("ports", nil, []*pair{own})
	n.change(edgetest.Entry("site", "ports", ports), siteEntry("none", "none.test"))
	const denied = "503 policy-denied"
	for _, c := range []struct {
		host, target string
		rule         exchange.Switch
		want         string
	}{
		{"set.test", "/a?b=c", exchange.Unset, "308 https://set.test:8443/a?b=c"},
		{"Set.test:8080", "//b\x80\"", exchange.Unset, "308 https://set.test:8443//b%80\""},
		{"set.test", "/", exchange.Off, ""},
		{"plain.test", "/", exchange.Unset, ""},
		{"plain.test", "/", exchange.On, "308 https://plain.test:8443/"},
		{"pending.test", "/", exchange.Unset, ""},
		{"pending.test", "/", exchange.On, ""},
		{"unset.test", "/x", exchange.Unset, ""},
		{"unset.test", "/x", exchange.On, "301 https://unset.test/x"},
		{"ports.test", "/x", exchange.On, "301 https://ports.test:8444/x"},
		{"strict.test", "/", exchange.Unset, "403 client-cert-required"},
		{"strict.test", "/", exchange.On, "301 https://strict.test/"},
		{"none.test", "/", exchange.Unset, ""},
		{"none.test", "/", exchange.Off, ""},
		{"none.test", "/", exchange.On, denied},
	} {
		x := n.asked(c.host, "/", nil)
		x.In.Target.Raw = c.target
		x.Overrides.ForceHTTPS = c.rule
		if a := ForceHTTPS(n.core)(x); a != nil {
			t.Errorf("%s: it is not held", c.host)
		}
		if got := told(x.Deferred()); got != c.want {
			t.Errorf("%s%s with %d: %s, not %s", c.host, c.target, c.rule, got, c.want)
		}
	}
	for name, change := range map[string]func(*exchange.Exchange){
		"HTTPS":        func(x *exchange.Exchange) { x.In.TLS, x.In.Scheme = new(tls.ConnectionState), "https" },
		"a validation": func(x *exchange.Exchange) { *exchange.Validation.Of(x) = true },
	} {
		for _, host := range []string{"set.test", "none.test", "strict.test"} {
			x := n.asked(host, "/", nil)
			x.Overrides.ForceHTTPS = exchange.On
			change(x)
			if ForceHTTPS(n.core)(x); x.HasDeferred() {
				t.Errorf("%s of %s: %s", name, host, told(x.Deferred()))
			}
		}
	}
	// Behind a trusted proxy the client's way counts, and a certificate is shown to the edge alone.
	for _, c := range []struct {
		host, scheme string
		overTLS      bool
		redirected   bool
	}{{"set.test", "https", false, false}, {"set.test", "http", false, true}, {"set.test", "http", true, true}, {"none.test", "https", false, false}} {
		x := n.asked(c.host, "/", nil)
		if x.In.Scheme = c.scheme; c.overTLS {
			x.In.TLS = new(tls.ConnectionState)
		}
		if ForceHTTPS(n.core)(x); x.HasDeferred() != c.redirected {
			t.Errorf("%+v: %v", c, x.HasDeferred())
		}
	}
	strict := n.asked("strict.test", "/", nil)
	strict.In.Scheme = "https"
	if ForceHTTPS(n.core)(strict); told(strict.Deferred()) != "403 client-cert-required" {
		t.Error(told(strict.Deferred()))
	}
	// What rules hold back stands.
	x := n.asked("set.test", "/", nil)
	x.Defer(func(x *exchange.Exchange) *exchange.Answer { return x.Respond(451) })
	if ForceHTTPS(n.core)(x); told(x.Deferred()) != "451 " {
		t.Error(told(x.Deferred()))
	}
}

// A redirect to a name whose handshake fails would lock its visitors out: a wildcard is one label (RFC 9525 §6.3).
func TestOnlyNamesOfACertificateAreForcedToHTTPS(t *testing.T) {
	n := newNode(t, t.TempDir())
	force := func(m *configv1.SiteHttps) { m.ForceHttps = &configv1.HttpsRedirect{Status: 301, Port: 443} }
	n.serve("deep", force, []*pair{issue(t, ecdsaKey(t), "*.deep.test")}, ".deep.test", `~^rx[0-9]+\.test$`)
	n.serve("two", force, []*pair{issue(t, ecdsaKey(t), "two.test"), issue(t, ecdsaKey(t), "*.two.test", "rx.other.test")}, ".two.test", "two.test", `~^rx\..*\.test$`)
	n.serve("strict", func(m *configv1.SiteHttps) {
		force(m)
		m.ClientCertificates = &configv1.ClientCertificates{
			Mode: configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_REQUIRED, Authorities: [][]byte{authority().Raw}, Depth: 1,
		}
	}, []*pair{issue(t, ecdsaKey(t), "*.strict.test")}, ".strict.test")
	for host, covered := range map[string]bool{
		"a.deep.test": true, "A.Deep.Test": true, "a.b.deep.test": false, "rx1.test": false,
		"two.test": true, "a.two.test": true, "a.b.two.test": false, "rx.other.test": true, "rx.more.test": false,
		"a.strict.test": true,
	} {
		for _, rule := range []exchange.Switch{exchange.Unset, exchange.On} {
			x := n.asked(host, "/x", nil)
			if x.Plan == nil {
				t.Fatal(host)
			}
			x.Overrides.ForceHTTPS = rule
			want := ""
			if covered {
				want = "301 https://" + x.In.Host + "/x"
			}
			if ForceHTTPS(n.core)(x); told(x.Deferred()) != want {
				t.Errorf("%s with %d: %q, not %q", host, rule, told(x.Deferred()), want)
			}
			if _, err := n.dial(x.In.Host); (err == nil) != covered && x.Plan.SiteID != "strict" {
				t.Errorf("%s: the handshake says %v", host, err)
			}
		}
	}
	x := n.asked("a.b.strict.test", "/", nil)
	if ForceHTTPS(n.core)(x); told(x.Deferred()) != "403 client-cert-required" {
		t.Error(told(x.Deferred()))
	}
}

func told(a *exchange.Answer) string {
	if a == nil {
		return ""
	}
	what := a.Code
	if what == "" {
		what = a.Header.Get("Location")
	}
	return strconv.Itoa(a.Status) + " " + what
}

func TestStrictTransport(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	n.serve("all", func(m *configv1.SiteHttps) { m.HstsMaxAge, m.HstsIncludeSubdomains, m.HstsPreload = 300, true, true }, []*pair{own}, "all.test")
	n.serve("some", func(m *configv1.SiteHttps) { m.HstsMaxAge = 5 }, []*pair{own}, "some.test")
	n.serve("none", nil, []*pair{own}, "none.test")
	for _, c := range []struct {
		host      string
		handshake *exchange.Handshake
		want      string
	}{
		{"all.test", &exchange.Handshake{ServerName: "all.test", SiteID: "all"}, "max-age=300; includeSubDomains; preload"},
		{"some.test", &exchange.Handshake{ServerName: "some.test", SiteID: "some"}, "max-age=5"},
		{"none.test", &exchange.Handshake{ServerName: "none.test", SiteID: "none"}, ""},
		{"all.test", nil, ""},
		{"all.test", &exchange.Handshake{ServerName: "some.test", SiteID: "some"}, ""},
		{"all.test", &exchange.Handshake{Health: true}, ""},
		{"unknown.test", &exchange.Handshake{ServerName: "all.test", SiteID: "all"}, ""},
	} {
		x := n.asked(c.host, "/", c.handshake)
		a := x.Respond(200)
		if StrictTransport(n.core)(x, a); a.Header.Get("Strict-Transport-Security") != c.want {
			t.Errorf("%s, %+v: %v", c.host, c.handshake, a.Header)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	ask := func(mode configv1.ClientCertificateMode, forward bool) func(*configv1.SiteHttps) {
		return func(m *configv1.SiteHttps) {
			m.ClientCertificates = &configv1.ClientCertificates{Mode: mode, Authorities: [][]byte{authority().Raw}, Depth: 1, ForwardHeaders: forward}
		}
	}
	const optional = configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_OPTIONAL
	n.serve("required", ask(required, true), []*pair{own}, "required.test")
	n.serve("optional", ask(optional, true), []*pair{own}, "optional.test")
	n.serve("silent", ask(optional, false), []*pair{own}, "silent.test")
	visitor := issueWith(t, ecdsaKey(t), func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "Zoë\r\n100%"}
	})
	stranger, err := n.tls.healthCertificate()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host    string
		shows   *tls.Certificate
		refused bool
		verify  string
	}{
		{"required.test", nil, true, ""},
		{"required.test", asClient(visitor), false, "SUCCESS"},
		{"optional.test", nil, false, "NONE"},
		{"optional.test", asClient(visitor), false, "SUCCESS"},
		{"silent.test", asClient(visitor), false, ""},
	} {
		for _, version := range versions {
			session := newClient(version)
			for range 2 {
				state, err := n.dial(c.host, session.config, func(config *tls.Config) {
					if c.shows != nil {
						config.Certificates = []tls.Certificate{*c.shows}
					}
				})
				if err != nil {
					t.Fatalf("%s: %v", c.host, err)
				}
				h := n.last()
				x := n.asked(c.host, "/", &h)
				x.In.TLS, x.In.Scheme = n.serverState(), "https"
				if x.In.TLS.DidResume != state.DidResume {
					t.Fatal("the state is of another connection")
				}
				a := ClientCertificate(n.core)(x)
				if (a != nil) != c.refused || a != nil && (a.Status != 403 || a.Code != "client-cert-required" || !a.CloseConn) {
					t.Errorf("%s: %+v", c.host, a)
				}
				told := map[string]string{}
				for _, edit := range x.Out.Edits {
					told[edit.Name] = edit.Values[0]
				}
				if told[clientVerify] != c.verify {
					t.Errorf("%s: %v", c.host, told)
				}
				if c.verify == "SUCCESS" && (told[clientSubject] != "CN=Zo%C3%AB%0D%0A100%25" || len(told[clientDigest]) != 64 || told[clientSerial] == "") {
					t.Errorf("%s: %v", c.host, told)
				}
			}
		}
	}
	// One of nobody's ends the handshake.
	before := n.refused(clientCertificate)
	if _, err := n.dial("optional.test", func(config *tls.Config) {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }
	}); err == nil {
		t.Error("a certificate of nobody was taken")
	}
	n.wantRefused(clientCertificate, before+1)
	// A connection from before the setting showed its certificate to nobody.
	h := n.last()
	h.ServerName, h.SiteID, h.ClientPolicy = "required.test", "required", [16]byte{}
	x := n.asked("required.test", "/", &h)
	x.In.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{visitor.Leaf}, VerifiedChains: [][]*x509.Certificate{{visitor.Leaf}}}
	if ClientCertificate(n.core)(x) == nil {
		t.Error("an older connection was let in")
	}
}

// A requirement that cannot be kept yet leaves no way in. Where nothing was required plain HTTP goes on as before.
func TestASiteWhoseRequirementFails(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	require := func(m *configv1.SiteHttps) {
		m.ClientCertificates = &configv1.ClientCertificates{Mode: required, Authorities: [][]byte{authority().Raw}, Depth: 1}
	}
	guarded := func(when string, want map[string]bool) {
		t.Helper()
		for host, open := range want {
			plan := core.PlanOfHost(n.core.Tables(), host)
			if core.Guarded(n.core.Tables(), plan) != open {
				t.Errorf("%s: %s answers: %v", when, host, !open)
			}
		}
	}
	unreadable := httpsEntry("unreadable", nil, own)
	unreadable.Body = []byte{0xff}
	failed := n.change(siteEntry("required", "required.test"), siteEntry("asked", "asked.test"), siteEntry("unreadable", "unreadable.test"),
		httpsEntry("required", require, own), httpsEntry("asked", nil, own), unreadable)
	if len(failed) != 3 {
		t.Fatal(failed)
	}
	guarded("without material", map[string]bool{"required.test": false, "asked.test": true, "unreadable.test": false})
	appendPack(t, n.dir, framesOf(t, own))
	if failed := n.read(); len(failed) != 1 {
		t.Fatal(failed)
	}
	guarded("with material", map[string]bool{"required.test": true, "asked.test": true, "unreadable.test": false})
	// The version before goes on, with its material.
	if failed := n.change(httpsEntry("required", require, issue(t, ecdsaKey(t), "*.test"))); len(failed) != 2 {
		t.Fatal(failed)
	}
	guarded("with the material of the version before", map[string]bool{"required.test": true})
	n.change(httpsEntry("unreadable", nil, own))
	guarded("readable", map[string]bool{"unreadable.test": true})
}

func asClient(p *pair) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.Leaf.Raw}, PrivateKey: p.Key}
}

func TestDepthOfClientCertificates(t *testing.T) {
	c := &clientCertificates{depth: 1}
	chain := func(length int) tls.ConnectionState {
		list := make([]*x509.Certificate, length)
		return tls.ConnectionState{PeerCertificates: list[:1], VerifiedChains: [][]*x509.Certificate{list}}
	}
	for length, fits := range map[int]bool{1: true, 2: true, 3: true, 4: false} {
		if err := c.verify(chain(length)); (err == nil) != fits {
			t.Errorf("%d: %v", length, err)
		}
	}
}

func TestHeadersThatNoClientMaySend(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Client-Verify": true, "X-Client-Cert-Sha256": true, "X-Client-Cert-Subject": true, "X-Client-Cert-Serial": true,
		"X-Client-Version": false, "X-Client-": false, "Accept": false,
	} {
		if Tells(name) != want {
			t.Error(name)
		}
	}
}
