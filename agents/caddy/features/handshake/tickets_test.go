package handshake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

func ticketKey(n byte) []byte { return bytes.Repeat([]byte{n}, ticketKeyBytes) }

func (n *node) setKeys(version uint64, next, current, previous byte) {
	n.t.Helper()
	keys := &nodev1.SessionTicketKeys{Version: version, Next: ticketKey(next), Current: ticketKey(current)}
	if previous > 0 {
		keys.Previous = ticketKey(previous)
	}
	if _, err := setSessionTicketKeys(context.Background(), n.core, &edgev1.SetSessionTicketKeysRequest{Keys: keys}); err != nil {
		n.t.Fatal(err)
	}
	if got := n.core.Report().GetSessionTicketKeysVersion(); got != version {
		n.t.Fatalf("version %d", got)
	}
}

// client remembers sessions; each names the version of TLS that it speaks.
type client struct {
	cache   tls.ClientSessionCache
	version uint16
}

func newClient(version uint16) *client { return &client{tls.NewLRUClientSessionCache(8), version} }

func (c *client) config(config *tls.Config) {
	config.ClientSessionCache, config.MaxVersion = c.cache, c.version
}

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// twoNodes are of one cluster.
func twoNodes(t *testing.T, change func(*configv1.SiteHttps)) (a, b *node) {
	own := issue(t, ecdsaKey(t), "a.test")
	a, b = newNode(t, t.TempDir()), newNode(t, t.TempDir())
	for _, n := range []*node{a, b} {
		n.serve("a", change, []*pair{own}, "a.test")
	}
	return a, b
}

func TestSessionsOfOneNodeAreResumedByAnother(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t, nil)
			c := newClient(version)
			if a.mustDial("a.test", c.config).DidResume {
				t.Error("resumed what there was not")
			}
			if !a.mustDial("a.test", c.config).DidResume {
				t.Error("not resumed by the process itself")
			}
			if b.mustDial("a.test", c.config).DidResume {
				t.Error("resumed without keys")
			}
			// The session that b made is none of a's.
			a.setKeys(1, 2, 1, 0)
			b.setKeys(1, 2, 1, 0)
			if !b.mustDial("a.test", c.config).DidResume {
				t.Error("a session of before the keys came is not resumed by its process")
			}
			if !a.mustDial("a.test", c.config).DidResume {
				t.Error("not resumed by another node")
			}
			if got := a.core.Report().GetTls(); got.GetResumed() != 2 || got.GetHandshakes() != 3 {
				t.Errorf("%v", got)
			}
		})
	}
}

// Nodes take a rotation over one after the other; a client that is sent from one to the other at any moment resumes.
func TestNoSessionIsLostToARotation(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t, nil)
			a.setKeys(1, 2, 1, 0)
			b.setKeys(1, 2, 1, 0)
			c := newClient(version)
			a.mustDial("a.test", c.config)
			for round := range byte(4) {
				for _, n := range []*node{a, b} {
					n.setKeys(uint64(round)+2, round+3, round+2, round+1)
					for _, to := range []*node{b, a, b} {
						if !to.mustDial("a.test", c.config).DidResume {
							t.Fatalf("a full handshake in round %d", round)
						}
					}
				}
			}
			a.setKeys(10, 13, 12, 11)
			if a.mustDial("a.test", c.config).DidResume {
				t.Error("resumed by a key that is gone")
			}
		})
	}
}

func TestSessionsAreBoundToTheirSiteAndPolicy(t *testing.T) {
	for name, version := range versions {
		for what, change := range map[string]func(*configv1.SiteHttps){
			"cipher profile": func(m *configv1.SiteHttps) { m.CipherProfile = configv1.CipherProfile_CIPHER_PROFILE_COMPATIBLE },
			"client certificates": func(m *configv1.SiteHttps) {
				m.ClientCertificates = &configv1.ClientCertificates{
					Mode: configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_OPTIONAL, Authorities: [][]byte{authority().Raw}, Depth: 1,
				}
			},
			"certificate":           func(m *configv1.SiteHttps) { m.Certificates = m.Certificates[1:] },
			"name of a certificate": func(m *configv1.SiteHttps) { m.Certificates[0].Name = "another" },
			"nothing":               nil,
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				own, second := issue(t, ecdsaKey(t), "a.test"), issue(t, ecdsaKey(t), "a.test")
				n := newNode(t, t.TempDir())
				n.serve("a", nil, []*pair{own, second}, "a.test")
				c := newClient(version)
				n.mustDial("a.test", c.config)
				n.change(httpsEntry("a", change, own, second))
				if got := n.mustDial("a.test", c.config).DidResume; got != (what == "nothing" || what == "name of a certificate") {
					t.Errorf("resumed: %v", got)
				}
			})
		}
		// What changes while hands are shaken: the session was made under what was before.
		t.Run(name+" a change meanwhile", func(t *testing.T) {
			own := issue(t, ecdsaKey(t), "a.test")
			n := newNode(t, t.TempDir())
			n.serve("a", nil, []*pair{own}, "a.test")
			c := newClient(version)
			compatible := httpsEntry("a", func(m *configv1.SiteHttps) { m.CipherProfile = configv1.CipherProfile_CIPHER_PROFILE_COMPATIBLE }, own)
			n.mustDial("a.test", c.config, func(config *tls.Config) {
				config.VerifyConnection = func(tls.ConnectionState) error {
					n.change(compatible)
					return nil
				}
			})
			if n.mustDial("a.test", c.config).DidResume {
				t.Error("a session goes by a policy that it was not made under")
			}
		})
		t.Run(name+" another site", func(t *testing.T) {
			own := issue(t, ecdsaKey(t), "a.test")
			n := newNode(t, t.TempDir())
			n.serve("a", nil, []*pair{own}, "a.test")
			c := newClient(version)
			n.mustDial("a.test", c.config)
			edgetest.Change(t, n.core, nil, edgetest.Key("site", "a"))
			n.change(siteEntry("b", "a.test"), httpsEntry("b", nil, own))
			if n.mustDial("a.test", c.config).DidResume {
				t.Error("a session of another site was resumed")
			}
		})
		t.Run(name+" a disabled site", func(t *testing.T) {
			own := issue(t, ecdsaKey(t), "a.test")
			n := newNode(t, t.TempDir())
			n.serve("a", nil, []*pair{own}, "a.test")
			c := newClient(version)
			n.mustDial("a.test", c.config)
			off := edgetest.Site(0, "a.test")
			off.Disabled = true
			n.change(edgetest.Entry("site", "a", off))
			n.wantAlert("a.test", unrecognized, c.config)
		})
	}
}

// clock is one that goes ahead when it is told.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *clock) set(o *core.Options)  { o.Now = c.now }

// A session ends 24 hours after its keys were agreed on, however often it was resumed.
func TestSessionsEnd(t *testing.T) {
	var at clock
	own := issueWith(t, ecdsaKey(t), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(1000 * time.Hour) }, "a.test")
	n := newNode(t, t.TempDir(), at.set)
	n.serve("a", nil, []*pair{own}, "a.test")
	c := newClient(tls.VersionTLS12)
	n.mustDial("a.test", c.config)
	at.pass(23 * time.Hour)
	if !n.mustDial("a.test", c.config).DidResume {
		t.Error("a session of the day is not resumed")
	}
	at.pass(2 * time.Hour)
	if n.mustDial("a.test", c.config).DidResume {
		t.Error("a secret is used for longer than a day")
	}
	c = newClient(tls.VersionTLS13)
	n.mustDial("a.test", c.config)
	at.pass(25 * time.Hour)
	if n.mustDial("a.test", c.config).DidResume {
		t.Error("a session is resumed after a day")
	}
}

// The key of the process outlives the last session that was made by it by no more than a report, and comes anew when those
// of the cluster go.
func TestKeyOfTheProcessIsForgotten(t *testing.T) {
	var at clock
	n := newNode(t, t.TempDir(), at.set)
	k := n.tls.tickets
	first := *k.own
	n.setKeys(1, 2, 1, 0)
	at.pass(23 * time.Hour)
	n.setKeys(2, 3, 2, 1)
	if n.core.Report(); k.own == nil || *k.own != first {
		t.Error("the key is gone while sessions go by it")
	}
	at.pass(time.Hour)
	if n.core.Report(); k.own != nil {
		t.Error("the key is still there")
	}
	own := issueWith(t, ecdsaKey(t), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(1000 * time.Hour) }, "a.test")
	n.serve("a", nil, []*pair{own}, "a.test")
	c := newClient(tls.VersionTLS13)
	n.mustDial("a.test", c.config)
	if !n.mustDial("a.test", c.config).DidResume {
		t.Error("not resumed by the keys of the cluster")
	}
	if err := k.set(nil); err != nil {
		t.Fatal(err)
	}
	if n.mustDial("a.test", c.config).DidResume {
		t.Error("resumed by a key that is gone")
	}
	at.pass(48 * time.Hour)
	n.core.Report()
	c = newClient(tls.VersionTLS13)
	n.mustDial("a.test", c.config)
	if !n.mustDial("a.test", c.config).DidResume || *k.own == first {
		t.Error("without keys of the cluster there is none of the process")
	}
}

func TestKeysThatTheAgentKeeps(t *testing.T) {
	dir := t.TempDir()
	write := func(cluster, version string, current []byte) {
		t.Helper()
		text, err := json.Marshal(map[string]any{
			"clusterId": cluster, "version": version, "keys": map[string][]byte{"next": ticketKey(2), "current": current},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ticketKeys), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edgetest.WriteJournal(t, filepath.Join(dir, "config.journal"), edgetest.Header("node"))
	version := func() uint64 {
		return core.New(core.Options{StateDir: dir}).Report().GetSessionTicketKeysVersion()
	}
	if version() != 0 {
		t.Error("keys without a file")
	}
	write("cluster", "7", ticketKey(1))
	if got := version(); got != 7 {
		t.Errorf("version %d", got)
	}
	for name, broken := range map[string]func(){
		"another cluster": func() { write("other", "7", ticketKey(1)) },
		"no number":       func() { write("cluster", "x", ticketKey(1)) },
		"a short key":     func() { write("cluster", "7", []byte("short")) },
		"no JSON": func() {
			if err := os.WriteFile(filepath.Join(dir, ticketKeys), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		broken()
		if got := version(); got != 0 {
			t.Errorf("%s: version %d", name, got)
		}
	}
	n := newNode(t, t.TempDir())
	if _, err := setSessionTicketKeys(context.Background(), n.core, &edgev1.SetSessionTicketKeysRequest{
		Keys: &nodev1.SessionTicketKeys{Version: 1, Current: []byte("short")},
	}); err == nil {
		t.Error("a short key was taken")
	}
}
