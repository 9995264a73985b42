package handshake

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func TestEntriesThatDoNotCompile(t *testing.T) {
	n := newNode(t, t.TempDir())
	own := issue(t, ecdsaKey(t), "a.test")
	n.serve("a", nil, []*pair{own}, "a.test")
	client := func(change func(*configv1.ClientCertificates)) func(*configv1.SiteHttps) {
		return func(m *configv1.SiteHttps) {
			m.ClientCertificates = &configv1.ClientCertificates{
				Mode: configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_REQUIRED, Authorities: [][]byte{authority().Raw}, Depth: 2,
			}
			change(m.ClientCertificates)
		}
	}
	for name, change := range map[string]func(*configv1.SiteHttps){
		"no certificate": func(m *configv1.SiteHttps) { m.Certificates = nil },
		"five certificates": func(m *configv1.SiteHttps) {
			m.Certificates = append(m.Certificates, make([]*configv1.CertificateRef, 4)...)
		},
		"fingerprint":        func(m *configv1.SiteHttps) { m.Certificates[0].Fingerprint = []byte("short") },
		"version":            func(m *configv1.SiteHttps) { m.MinimumVersion = 9 },
		"profile":            func(m *configv1.SiteHttps) { m.CipherProfile = 9 },
		"redirect status":    func(m *configv1.SiteHttps) { m.ForceHttps = &configv1.HttpsRedirect{Status: 200, Port: 443} },
		"redirect port":      func(m *configv1.SiteHttps) { m.ForceHttps = &configv1.HttpsRedirect{Status: 301} },
		"HSTS":               func(m *configv1.SiteHttps) { m.HstsMaxAge = maxHSTSAge + 1 },
		"client mode":        client(func(m *configv1.ClientCertificates) { m.Mode = 0 }),
		"client authorities": client(func(m *configv1.ClientCertificates) { m.Authorities = nil }),
		"client authority":   client(func(m *configv1.ClientCertificates) { m.Authorities = [][]byte{[]byte("x")} }),
		"client depth":       client(func(m *configv1.ClientCertificates) { m.Depth = 6 }),
		"client and HTTP/3": func(m *configv1.SiteHttps) {
			client(func(*configv1.ClientCertificates) {})(m)
			m.Http3 = true
		},
	} {
		failed := n.change(httpsEntry("a", change, own))
		if len(failed) != 1 {
			t.Errorf("%s: %v", name, failed)
		}
		n.mustDial("a.test")
	}
	if failed := n.change(httpsEntry("a", client(func(*configv1.ClientCertificates) {}), own)); len(failed) != 0 {
		t.Error(failed)
	}
}

// An entry whose certificate is not there yet fails by the name of it, the version before goes on, and once the material
// comes the entry takes effect without being sent again.
func TestEntriesWaitForTheirMaterial(t *testing.T) {
	dir := t.TempDir()
	n := newNode(t, dir)
	before, after, late := issue(t, ecdsaKey(t), "a.test"), issue(t, ecdsaKey(t), "a.test"), issue(t, ecdsaKey(t), "late.test")
	n.serve("a", nil, []*pair{before}, "a.test")
	entries := []*configv1.Entry{httpsEntry("a", nil, after), siteEntry("late", "late.test"), httpsEntry("late", nil, late)}
	failed := n.change(entries...)
	if len(failed) != 2 || !strings.Contains(failed[0].GetReason(), `certificate "certificate a"`) {
		t.Fatal(failed)
	}
	if len(failed[0].GetRunningHash()) == 0 || len(failed[1].GetRunningHash()) != 0 {
		t.Error(failed)
	}
	serves := func(n *node, name string, want *pair) {
		t.Helper()
		if state := n.mustDial(name); !state.PeerCertificates[0].Equal(want.Leaf) {
			t.Errorf("%s has another certificate", name)
		}
	}
	serves(n, "a.test", before)
	n.wantAlert("late.test", unrecognized)

	// A new process reads both versions from the journal.
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteEntry("a", "a.test"), httpsEntry("a", nil, before)}), edgetest.Config(2, entries))
	restarted := newNode(t, dir)
	serves(restarted, "a.test", before)
	restarted.wantAlert("late.test", unrecognized)
	if failed := restarted.read(); len(failed) != 2 {
		t.Error(failed)
	}

	appendPack(t, dir, frameMaterial(t, after))
	for _, at := range []*node{n, restarted} {
		if failed := at.read(); len(failed) != 1 || failed[0].GetId() != "late" {
			t.Errorf("%v", failed)
		}
		serves(at, "a.test", after)
	}
	replacePack(t, dir, framesOf(t, after, late))
	for _, at := range []*node{n, restarted} {
		if failed := at.read(); len(failed) != 0 {
			t.Errorf("%v", failed)
		}
		serves(at, "a.test", after)
		serves(at, "late.test", late)
	}
}

// A certificate that cannot be used fails alone, on a running node and on one that starts.
func TestOneBadCertificateFailsAlone(t *testing.T) {
	dir := t.TempDir()
	n := newNode(t, dir)
	good, other := issue(t, ecdsaKey(t), "a.test", "b.test"), issue(t, ecdsaKey(t), "a.test")
	bad := issue(t, ecdsaKey(t), "a.test")
	bad.Material = proto.CloneOf(bad.Material)
	bad.Material.PrivateKey = other.Material.PrivateKey
	n.serve("a", nil, []*pair{good}, "a.test")
	appendPack(t, dir, framesOf(t, bad))
	n.read()
	entries := []*configv1.Entry{httpsEntry("a", nil, bad), siteEntry("b", "b.test"), httpsEntry("b", nil, good)}
	failed := n.change(entries...)
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteEntry("a", "a.test"), httpsEntry("a", nil, good)}), edgetest.Config(2, entries))
	restarted := newNode(t, dir)
	for _, c := range []struct {
		node   *node
		failed []*nodev1.FailedEntry
	}{{n, failed}, {restarted, restarted.core.Report().GetFailed()}} {
		if len(c.failed) != 1 || !strings.Contains(c.failed[0].GetReason(), errKeyMismatch.Error()) {
			t.Errorf("%v", c.failed)
		}
		for _, name := range []string{"a.test", "b.test"} {
			if state := c.node.mustDial(name); !state.PeerCertificates[0].Equal(good.Leaf) {
				t.Errorf("%s has another certificate", name)
			}
		}
	}
	// With none before it the site has no HTTPS, which is told.
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"),
		edgetest.Config(1, []*configv1.Entry{siteEntry("a", "a.test"), httpsEntry("a", nil, bad)}))
	first := newNode(t, dir)
	first.wantAlert("a.test", unrecognized)
	if warnings := strings.Join(first.core.Report().GetWarnings(), "\n"); !strings.Contains(warnings, errKeyMismatch.Error()) {
		t.Error(warnings)
	}
}

func TestReplacingACertificateUnderLoad(t *testing.T) {
	n := newNode(t, t.TempDir())
	key := ecdsaKey(t)
	current := issue(t, key, "a.test")
	n.serve("a", nil, []*pair{current}, "a.test")
	var stop atomic.Bool
	var clients sync.WaitGroup
	var handshakes atomic.Int64
	for range 4 {
		clients.Go(func() {
			session := newClient(tls.VersionTLS13)
			for i := 0; !stop.Load(); i++ {
				var change []func(*tls.Config)
				if i%2 == 0 {
					change = append(change, session.config)
				}
				if _, err := n.dial("a.test", change...); err != nil {
					t.Error(err)
					return
				}
				handshakes.Add(1)
			}
		})
	}
	for i := range 30 {
		last := issue(t, key, "a.test")
		if i%5 == 0 {
			// The pack is made anew with what is served and what will be.
			replacePack(t, n.dir, framesOf(t, current, last))
		} else {
			appendPack(t, n.dir, frameMaterial(t, last))
		}
		n.read()
		if failed := n.change(httpsEntry("a", nil, last)); len(failed) > 0 {
			t.Fatal(failed)
		}
		current = last
		seen := handshakes.Load()
		for handshakes.Load() < seen+8 && !t.Failed() {
			if _, err := n.dial("a.test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Store(true)
	clients.Wait()
	if state := n.mustDial("a.test"); !state.PeerCertificates[0].Equal(current.Leaf) {
		t.Error("another certificate")
	}
}
