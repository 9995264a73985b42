package handshake

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/ja4"
)

var terminators = core.NewComponent("TLS", newTerminator)

// Terminator decides handshakes. It implements exchange.TLS.
type Terminator struct {
	core  *core.Core
	pack  *pack
	cache *cache
	// What entries name is tried apart from what clients ask for: trying takes nothing from them.
	tried    *cache
	tickets  *tickets
	counters counters
	server   *tls.Config
	health   *tls.Config
	quic     *tls.Config
	prepared map[profile]*tls.Config

	// Sites whose entries were compiled while the process started; nil once it has.
	mu       sync.Mutex
	starting map[string]struct{}
}

func newTerminator(c *core.Core) *Terminator {
	t := &Terminator{core: c, tickets: newTickets(c.Now), starting: map[string]struct{}{}}
	t.pack = newPack(filepath.Join(c.StateDir(), packName))
	t.cache = newCache(t.pack, cacheBytes, c.Now)
	t.tried = newCache(t.pack, triedBytes, c.Now)
	t.prepare()
	t.health = t.healthConfig()
	t.server = &tls.Config{GetConfigForClient: t.decide, MinVersion: tls.VersionTLS12}
	t.readPack()
	return t
}

// Restore ends the start: entries are checked in full from now on.
func (t *Terminator) Restore() {
	t.mu.Lock()
	t.starting = nil
	t.mu.Unlock()
	t.restoreTickets()
}

// ServerConfig decides by the hello.
func (t *Terminator) ServerConfig() *tls.Config { return t.server }

func (t *Terminator) readPack() {
	drop := func(id fingerprint) {
		t.cache.drop(id)
		t.tried.drop(id)
	}
	if err := t.pack.read(drop); err != nil {
		t.core.Log().Warn("cannot read the pack of certificates; the former one stays", zap.Error(err))
	}
}

// check fails where a certificate cannot be used. While the process starts, the first version of a site's entry is only
// looked up in the pack: parsing all certificates would take longer than everything else. A version that follows another
// one is checked in full even then, because where it fails the one before it serves.
func (t *Terminator) check(siteID string, ref reference) error {
	if !t.pack.has(ref.id) {
		return errNoMaterial
	}
	t.mu.Lock()
	first := false
	if t.starting != nil {
		_, known := t.starting[siteID]
		first = !known
	}
	t.mu.Unlock()
	if first {
		return nil
	}
	_, err := t.tried.get(ref.id, ref.name)
	return err
}

// checked notes that an entry of a site was compiled while the process started.
func (t *Terminator) checked(siteID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starting != nil {
		t.starting[siteID] = struct{}{}
	}
}

// HealthName is what checks of the node's health ask for.
const HealthName = "health.svc.invalid"

// decide finds the configuration for a client by its hello.
func (t *Terminator) decide(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	conn, _ := hello.Conn.(exchange.HandshakeConn)
	if conn == nil {
		return nil, errNoConn
	}
	quic := isQUIC(conn)
	host, named := serverName(hello.ServerName)
	handshake := &exchange.Handshake{ServerName: host, Health: !named, JA4: ja4.Of(hello, quic)}
	if !named {
		conn.SetHandshake(handshake)
		return t.health, nil
	}
	plan, s, refusal := t.find(host, conn.Port())
	if refusal == nil && quic && !s.http3 {
		refusal = refusedProtocol
	}
	if refusal != nil {
		conn.SetHandshake(handshake)
		return nil, t.refuse(conn, refusal)
	}
	handshake.SiteID = plan.SiteID
	if s.client != nil {
		handshake.ClientPolicy = s.client.policy
	}
	conn.SetHandshake(handshake)
	return (&meant{t, s, host}).config(quic), nil
}

// find finds the site of a name and what it has of HTTPS, or says why there is none.
func (t *Terminator) find(host string, port uint16) (*exchange.Plan, *site, *refusal) {
	tables := t.core.Tables()
	plan := core.PlanOfHost(tables, host)
	if plan == nil {
		return nil, nil, refusedName
	}
	if plan.Disabled {
		return nil, nil, refusedDisabled
	}
	s := siteHTTPS.Of(plan)
	switch {
	case s == nil, s.pending.have(plan, host):
		return nil, nil, refusedName
	case !core.ServesPort(plan, port, true):
		return nil, nil, refusedPort
	}
	return plan, s, nil
}

// serverName brings the name that a client asks for into the form in which sites are looked up; named is false where the
// node itself is meant: there is none, it is an address, or the one for checks of health. A name that cannot be one is
// none of a site's.
func serverName(sni string) (host string, named bool) {
	if sni == "" {
		return "", false
	}
	if strings.IndexByte(sni, ':') >= 0 {
		_, err := netip.ParseAddr(sni)
		return "", err != nil
	}
	host, kind := core.NormalizeHost(sni)
	switch {
	case kind == core.HostInvalid:
		return "", true
	case kind == core.HostAddress:
		return "", false
	}
	return host, host != HealthName
}

func isQUIC(conn exchange.HandshakeConn) bool {
	q, ok := conn.(interface{ QUIC() bool })
	return ok && q.QUIC()
}

// refusal is a reason not to shake hands.
type refusal struct {
	counter
	text string
}

func (r *refusal) Error() string { return r.text }

var (
	refusedName     = &refusal{unknownName, "no site has the name and HTTPS"}
	refusedDisabled = &refusal{disabled, "the site is disabled"}
	refusedPort     = &refusal{port, "the site is not served on the port"}
	refusedProtocol = &refusal{protocol, "the site is not served over HTTP/3"}

	errNoConn  = errors.New("the connection does not belong to a listener of the edge")
	errTooDeep = errors.New("the chain of the client certificate is too long")
)

// unrecognizedName is the alert of a fatal error by that name, as a record of its own.
var unrecognizedName = []byte{21, 3, 3, 0, 2, 2, 112}

// refuse tells the client that the name is not served here, and counts. crypto/tls has no way to say so before it has
// agreed on keys, which costs more than all else of a handshake that is refused; nothing has been written yet.
func (t *Terminator) refuse(conn exchange.HandshakeConn, r *refusal) error {
	t.counters.refuse(r.counter)
	if !isQUIC(conn) {
		// A client that is gone is told nothing.
		_, _ = conn.Write(unrecognizedName)
	}
	return r
}
