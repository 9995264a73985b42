package handshake

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func TestNamesAndWhatIsRefused(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "a.com", "*.a.com")
	n.serve("a", func(m *configv1.SiteHttps) {
		m.Pending = []*configv1.Domain{edgetest.Domain("new.a.com"), edgetest.Domain("*.b.com")}
	}, []*pair{own}, "a.com", "*.a.com", "new.a.com", "*.b.com", "x.b.com", "uncovered.com")
	n.change(siteEntry("plain", "plain.com"))

	if state := n.mustDial("A.com"); !state.PeerCertificates[0].Equal(own.Leaf) {
		t.Error("another certificate")
	}
	if h := n.last(); h.ServerName != "a.com" || h.SiteID != "a" || h.Health {
		t.Errorf("%+v", h)
	}
	n.mustDial("www.a.com")
	for _, name := range []string{"unknown.com", "plain.com", "new.a.com", "y.b.com", "a.b.a.com"} {
		n.wantAlert(name, unrecognized)
	}
	n.wantRefused(unknownName, 5)
	// It is not pending by its own domain, but no certificate has it.
	n.wantAlert("x.b.com", unrecognized)
	n.wantAlert("uncovered.com", unrecognized)
	n.wantRefused(noCertificate, 2)
	n.port = 8443
	n.wantAlert("a.com", unrecognized)
	n.wantRefused(port, 1)
	n.port = 443
	disabledSite := edgetest.Site(0, "a.com")
	disabledSite.Disabled = true
	n.change(edgetest.Entry("site", "a", disabledSite))
	n.wantAlert("a.com", unrecognized)
	n.wantRefused(disabled, 1)
	status := n.core.Report()
	if got := status.GetTls(); got.GetHandshakes() != 2 || got.GetRefused()["unknown-name"] != 5 || got.GetCertificates() != 1 || got.GetParsed() != 1 {
		t.Errorf("%v", got)
	}
	if !slices.Contains(status.GetCapabilities(), "https-v1") {
		t.Error("the capability is missing")
	}
	var text strings.Builder
	n.tls.WriteMetrics(&text)
	if !strings.Contains(text.String(), `svc_edge_tls_refused_total{reason="unknown-name"} 5`) {
		t.Error(text.String())
	}
}

func TestChecksOfTheNodeGetItsOwnCertificate(t *testing.T) {
	n := newNode(t, t.TempDir())
	for _, name := range []string{"", "health.svc.invalid"} {
		state, err := n.dial(name, func(c *tls.Config) { c.InsecureSkipVerify = true })
		if err != nil {
			t.Fatal(err)
		}
		leaf := state.PeerCertificates[0]
		if leaf.Subject.CommonName != HealthName || leaf.VerifyHostname(HealthName) != nil || leaf.NotAfter.Before(time.Now().AddDate(9, 11, 0)) {
			t.Errorf("%v", leaf.Subject)
		}
		if h := n.last(); !h.Health || h.SiteID != "" || h.ServerName != name {
			t.Errorf("%+v", h)
		}
	}
	for sni, want := range map[string]bool{
		"": false, "1.2.3.4": false, "::1": false, "health.svc.invalid": false, "HEALTH.svc.invalid": false,
		"a.com": true, "a.com:443": true, "a b": true, "[::1]": true,
	} {
		if _, named := serverName(sni); named != want {
			t.Errorf("%q: %v", sni, named)
		}
	}
}

// offered are suites of TLS 1.2 that a client may bring.
func offered(suites ...uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, suites }
}

func TestVersionsAndCiphers(t *testing.T) {
	n := newNode(t, t.TempDir())
	pairs := []*pair{issue(t, ecdsaKey(t), "*.test"), issue(t, rsaKey(), "*.test")}
	for name, change := range map[string]func(*configv1.SiteHttps){
		"modern":     nil,
		"compatible": func(m *configv1.SiteHttps) { m.CipherProfile = configv1.CipherProfile_CIPHER_PROFILE_COMPATIBLE },
		"new":        func(m *configv1.SiteHttps) { m.MinimumVersion = configv1.TlsVersion_TLS_VERSION_1_3 },
	} {
		n.serve(name, change, pairs, name+".test")
	}
	failed := uint64(0)
	all := []uint16{}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) && !slices.Contains(suite.SupportedVersions, tls.VersionTLS13) {
			all = append(all, suite.ID)
		}
	}
	for site, want := range map[string][]uint16{"modern": modernCiphers, "compatible": compatibleCiphers, "new": {}} {
		for _, suite := range all {
			_, err := n.dial(site+".test", offered(suite))
			if err != nil {
				failed++
			}
			if (err == nil) != slices.Contains(want, suite) {
				t.Errorf("%s: %s: %v", site, tls.CipherSuiteName(suite), err)
			}
		}
		if state := n.mustDial(site + ".test"); state.Version != tls.VersionTLS13 || state.CurveID != tls.X25519MLKEM768 {
			t.Errorf("%s: version %x, curve %v", site, state.Version, state.CurveID)
		}
		for _, curve := range curves {
			if state := n.mustDial(site+".test", func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{curve} }); state.CurveID != curve {
				t.Errorf("%v became %v", curve, state.CurveID)
			}
		}
		for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
			if _, err := n.dial(site+".test", func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }); err == nil {
				t.Errorf("%s: version %x", site, version)
			}
			failed++
		}
	}
	n.wantRefused(protocol, failed)
	n.wantRefused(other, 0)
}

func TestProtocols(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	n.serve("old", func(m *configv1.SiteHttps) { m.Http2 = false }, []*pair{own}, "old.test")
	n.serve("new", nil, []*pair{own}, "new.test")
	if got := n.mustDial("old.test").NegotiatedProtocol; got != "http/1.1" {
		t.Error(got)
	}
	if got := n.mustDial("new.test").NegotiatedProtocol; got != "h2" {
		t.Error(got)
	}
}

func TestCertificateOfTheKindThatTheClientKnows(t *testing.T) {
	n := newNode(t, t.TempDir())
	rsa, ecdsa, elsewhere := issue(t, rsaKey(), "a.test", "b.test"), issue(t, ecdsaKey(t), "a.test"), issue(t, ecdsaKey(t), "c.test")
	n.serve("s", nil, []*pair{rsa, elsewhere, ecdsa}, "a.test", "b.test", "c.test")
	onlyRSA := offered(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
	for _, c := range []struct {
		name   string
		client []func(*tls.Config)
		want   *pair
	}{
		{"a.test", nil, ecdsa},
		{"a.test", []func(*tls.Config){onlyRSA}, rsa},
		{"b.test", nil, rsa},
		{"c.test", nil, elsewhere},
	} {
		if state := n.mustDial(c.name, c.client...); !state.PeerCertificates[0].Equal(c.want.Leaf) {
			t.Errorf("%s: %v", c.name, state.PeerCertificates[0].PublicKeyAlgorithm)
		}
	}
	if _, err := n.dial("c.test", onlyRSA); err == nil {
		t.Error("a client got a certificate that it does not know")
	}
}

// One that is valid comes before one that is not, whatever their kinds; of those that are not the order is the same.
func TestValidCertificateComesFirst(t *testing.T) {
	n := newNode(t, t.TempDir())
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	future := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	rsa, ecdsa := issue(t, rsaKey(), "a.test", "b.test"), issue(t, ecdsaKey(t), "a.test")
	oldRSA, oldECDSA := issueWith(t, rsaKey(), expired, "a.test", "c.test"), issueWith(t, ecdsaKey(t), expired, "a.test", "b.test", "c.test")
	early := issueWith(t, ecdsaKey(t), future, "b.test")
	n.serve("all", nil, []*pair{oldECDSA, oldRSA, rsa, ecdsa}, "a.test")
	n.serve("one", nil, []*pair{oldECDSA, early, rsa}, "b.test")
	n.serve("none", nil, []*pair{oldRSA, oldECDSA}, "c.test")
	onlyRSA := offered(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
	unchecked := func(c *tls.Config) { c.InsecureSkipVerify = true }
	for _, c := range []struct {
		name   string
		client []func(*tls.Config)
		want   *pair
	}{
		{"a.test", nil, ecdsa},
		{"a.test", []func(*tls.Config){onlyRSA}, rsa},
		{"b.test", nil, rsa},
		{"c.test", []func(*tls.Config){unchecked}, oldECDSA},
		{"c.test", []func(*tls.Config){unchecked, onlyRSA}, oldRSA},
	} {
		if state := n.mustDial(c.name, c.client...); !state.PeerCertificates[0].Equal(c.want.Leaf) {
			t.Errorf("%s: %v until %v", c.name, state.PeerCertificates[0].PublicKeyAlgorithm, state.PeerCertificates[0].NotAfter)
		}
	}
}

func TestStapleWhileItHolds(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "*.test")
	n.serve("on", func(m *configv1.SiteHttps) { m.OcspStapling = true }, []*pair{own}, "on.test")
	n.serve("off", nil, []*pair{own}, "off.test")
	staple := func(name string) string { return string(n.mustDial(name).OCSPResponse) }
	if got := staple("on.test"); got != "" {
		t.Error(got)
	}
	appendPack(t, n.dir, frameStaple(t, own, "good", time.Now().Add(time.Hour)))
	n.read()
	if on, off := staple("on.test"), staple("off.test"); on != "good" || off != "" {
		t.Errorf("%q, %q", on, off)
	}
	appendPack(t, n.dir, frameStaple(t, own, "late", time.Now().Add(-time.Second)))
	n.read()
	if got := staple("on.test"); got != "" {
		t.Error(got)
	}
}

func TestExpiredCertificateIsServedAndTold(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issueWith(t, ecdsaKey(t), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "a.test")
	n.serve("a", nil, []*pair{own}, "a.test")
	n.mustDial("a.test", func(c *tls.Config) { c.InsecureSkipVerify = true })
	warnings := strings.Join(n.core.Report().GetWarnings(), "\n")
	if !strings.Contains(warnings, `"certificate a" expired`) {
		t.Error(warnings)
	}
}

// Entries that name certificates take nothing from those that clients ask for, and are no asking themselves.
func TestTryingIsNoAsking(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "a.test")
	n.serve("a", nil, []*pair{own}, "a.test")
	n.mustDial("a.test")
	n.tls.cache.most = n.tls.cache.bytes
	made, _ := n.tls.cache.get(own.ID, "a")
	late := issueWith(t, ecdsaKey(t), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "b.test")
	n.serve("b", nil, []*pair{late}, "b.test")
	if again, _ := n.tls.cache.get(own.ID, "a"); again != made {
		t.Error("what clients ask for made room for what an entry names")
	}
	if warnings := n.core.Report().GetWarnings(); len(warnings) > 0 {
		t.Error(warnings)
	}
}
