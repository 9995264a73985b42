package origin

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"golang.org/x/net/http/httpguts"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const maxOrigins = 1000

// Pool is the compiled origins of a site: what a request needs to find and reach one. It holds no connection and no
// goroutine, so a node can have any number of them.
type Pool struct {
	// Those groups that rules choose, by their names; nil without any.
	groups   map[string]*group
	policy   configv1.BalancePolicy
	maxFails uint32
	recovery time.Duration
	// budget bounds further tries; nil for a site with one origin.
	budget *budget

	// The default group. What every request reads begins at its end: with thousands of sites it is in no cache, and each
	// line of memory is waited for.
	group
	state     *State
	websocket bool
	keepalive bool
	// Origins are asked over HTTP/2; requests of gRPC are streams.
	http2, grpc bool
	status      bool
	maxUses     uint32
	tries       int
	times       times
	idle        time.Duration
	// Lifetime of the cookie that keeps a visitor on one origin, 0 for none.
	affinitySeconds int64
	// Largest request body in bytes, 0 for any.
	bodyLimit int64
}

// group is origins that stand in for one another, with backups, turns and health of their own.
type group struct {
	mu sync.Mutex
	// Current weights of the smooth round robin.
	turns []int32

	// The figures of each origin, found with its first request.
	figures []atomic.Pointer[figures]
	pool    *Pool
	origins []origin
}

// groupNamed is the group of a name, nil where there is none.
func (p *Pool) groupNamed(name string) *group {
	if name == "" {
		return &p.group
	}
	return p.groups[name]
}

type origin struct {
	dial dialKey
	// Of the idle connections.
	shard  uint8
	health originKey
	hash   uint64
	// "" sends the request's host.
	hostHeader string
	weight     int32
	backup     bool
	// The server name is a setting, and does not follow from the host header.
	named bool
}

// dialKey names what a connection was made to; connections with equal keys can stand in for one another. Equal names are
// kept once, so that comparing two keys reads nothing but the keys.
type dialKey struct {
	host unique.Handle[string]
	// Server name sent and verified; an IP literal is only verified.
	name unique.Handle[string]
	port uint16
	tls  tlsMode
}

func newDialKey(host string, port uint16, tls tlsMode, name string) dialKey {
	return dialKey{unique.Make(host), unique.Make(name), port, tls}
}

// shard is the place of the key among the idle connections.
func (k dialKey) shard() uint8 {
	return uint8((hashString(k.host.Value()) ^ uint64(k.port)) % idleShards)
}

type tlsMode uint8

const (
	plain tlsMode = iota
	tlsVerified
	tlsUnverified
)

// Compile turns the origins of a site into a Pool. It fails when a field has a value the node cannot work with.
func Compile(siteID string, origins []*configv1.Origin, pool *configv1.OriginPool, state *State) (*Pool, error) {
	if len(origins) > maxOrigins {
		return nil, fmt.Errorf("the site has %d origins; the maximum is %d", len(origins), maxOrigins)
	}
	// Most sites have one origin; it lies beside its pool, where a request reads both.
	room := new(struct {
		Pool
		first   [1]origin
		figures [1]atomic.Pointer[figures]
	})
	p := &room.Pool
	*p = Pool{
		group:     group{pool: p, origins: room.first[:0], figures: room.figures[:]},
		state:     state,
		policy:    pool.GetPolicy(),
		websocket: pool.GetWebsocket(),
		keepalive: pool.GetKeepalive(),
		http2:     pool.GetHttp2(),
		grpc:      pool.GetGrpc() && pool.GetHttp2(),
		status:    pool.GetStatusRetry(),
		tries:     int(min(max(pool.GetTries(), 1), 5)),
		maxFails:  max(pool.GetMaxFails(), 1),
		recovery:  time.Duration(pool.GetRecoverySeconds()) * time.Second,
		times: times{
			connect: milliseconds(pool.GetConnectTimeoutMs(), 10*time.Second),
			send:    milliseconds(pool.GetSendTimeoutMs(), time.Minute),
			read:    milliseconds(pool.GetReadTimeoutMs(), time.Minute),
		},
		idle:    time.Duration(pool.GetKeepaliveIdleSeconds()) * time.Second,
		maxUses: pool.GetKeepaliveMaxRequests(),

		affinitySeconds: int64(min(pool.GetAffinityTtlSeconds(), maxAffinitySeconds)),
	}
	if len(origins) > 1 {
		p.origins = make([]origin, 0, len(origins))
		p.budget = new(budget)
	}
	if p.idle == 0 {
		p.idle = time.Minute
	}
	if p.maxUses == 0 {
		p.maxUses = 1000
	}
	for _, o := range origins {
		compiled, err := compileOrigin(siteID, o, pool.GetTlsVerify())
		if err != nil {
			return nil, fmt.Errorf("origin %s: %w", o.GetId(), err)
		}
		g := p.groupNamed(o.GetGroup())
		if g == nil {
			g = &group{pool: p}
			if p.groups == nil {
				p.groups = map[string]*group{}
			}
			p.groups[o.GetGroup()] = g
		}
		g.origins = append(g.origins, compiled)
	}
	if len(p.origins) > 1 {
		p.figures = make([]atomic.Pointer[figures], len(p.origins))
	}
	for _, g := range p.groups {
		g.figures = make([]atomic.Pointer[figures], len(g.origins))
	}
	return p, nil
}

func milliseconds(n uint32, unset time.Duration) time.Duration {
	if n == 0 {
		return unset
	}
	return time.Duration(n) * time.Millisecond
}

func compileOrigin(siteID string, o *configv1.Origin, verify bool) (origin, error) {
	host := strings.ToLower(o.GetAddress())
	if o.GetPort() < 1 || o.GetPort() > 65535 {
		return origin{}, fmt.Errorf("port %d must be between 1 and 65535", o.GetPort())
	}
	if _, err := netip.ParseAddr(host); err != nil && (host == "" || len(host) > 253 || strings.ContainsFunc(host, isNotHostByte)) {
		return origin{}, errors.New("the address is neither a host name nor an IP address")
	}
	if h := o.GetHostHeader(); !httpguts.ValidHostHeader(h) || strings.ContainsAny(h, "/\\") {
		return origin{}, errors.New("the host header is not valid")
	}
	if strings.ContainsFunc(o.GetSni(), isNotHostByte) {
		return origin{}, errors.New("the server name is not a host name")
	}
	mode, name := plain, ""
	if o.GetHttps() {
		mode, name = tlsUnverified, serverName(o)
		if verify {
			mode = tlsVerified
		}
	}
	key := newDialKey(host, uint16(o.GetPort()), mode, name)
	return origin{
		dial:       key,
		shard:      key.shard(),
		health:     originKey{site: siteID, origin: o.GetId()},
		hash:       hashString(o.GetId()),
		hostHeader: o.GetHostHeader(),
		weight:     int32(min(max(o.GetWeight(), 1), 100)),
		backup:     o.GetBackup(),
		named:      o.GetSni() != "",
	}, nil
}

// serverName is the origin's own setting, else the host sent to it, else its address.
func serverName(o *configv1.Origin) string {
	name := o.GetSni()
	if name == "" {
		name = withoutPort(o.GetHostHeader())
	}
	if name == "" {
		name = o.GetAddress()
	}
	return serverNameOf(name)
}

// serverNameOf is how a name is sent and compared.
func serverNameOf(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func isNotHostByte(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// withoutPort cuts the port, and the brackets of an IPv6 literal, off a host.
func withoutPort(host string) string {
	if rest, ok := strings.CutPrefix(host, "["); ok {
		inside, _, _ := strings.Cut(rest, "]")
		return inside
	}
	if name, _, ok := strings.Cut(host, ":"); ok && strings.Count(host, ":") == 1 {
		return name
	}
	return host
}
