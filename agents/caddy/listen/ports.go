package listen

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/hold"
)

// retryTime is how soon a port that could not be opened is tried again.
const retryTime = 2 * time.Second

// settleTime is how long the node's usual ports stay the same before what a former process had beside them is closed.
const settleTime = 10 * time.Second

// listenPorts are those of a cluster besides the usual ones, without TLS and with.
type listenPorts struct{ http, https []uint16 }

var listenPortsOf = exchange.NewSetting("listen-ports", &listenPorts{})

func init() {
	core.SettingKind("listen-ports", listenPortsOf, compileListenPorts)
	core.ConfigureKind("listen-ports", core.KindOptions{Features: []string{"edge-ports-v1"}})
}

func compileListenPorts(message *configv1.ListenPorts) (*listenPorts, error) {
	http, err := core.Ports(message.GetHttpPorts())
	if err != nil {
		return nil, err
	}
	https, err := core.Ports(message.GetHttpsPorts())
	if err != nil {
		return nil, err
	}
	for _, port := range slices.Concat(http, https) {
		if port == core.HTTPPort || port == core.HTTPSPort {
			return nil, fmt.Errorf("port %d is already one of the node's standard ports", port)
		}
	}
	for _, port := range http {
		if slices.Contains(https, port) {
			return nil, fmt.Errorf("port %d cannot have TLS and plain HTTP at the same time", port)
		}
	}
	return &listenPorts{http, https}, nil
}

// ports opens and closes what a node listens on: the addresses that Caddy's servers name, and the ports of the cluster on
// the same hosts.
type ports struct {
	core   *core.Core
	holder *holder
	wake   chan struct{}

	mu sync.Mutex
	// What Caddy's servers listen on, and when that changed last.
	bases   []*sockets
	changed time.Time
}

var portsOf = core.NewComponent("ports", func(c *core.Core) *ports {
	p := &ports{core: c, holder: holderOf.Of(c), wake: make(chan struct{}, 1)}
	c.OnChange(p.look)
	return p
})

// look has ports opened and closed soon.
func (p *ports) look() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run keeps what is listened on as it should be.
func (p *ports) Run(stop <-chan struct{}) {
	again := time.NewTicker(retryTime)
	defer again.Stop()
	for {
		p.update()
		p.holder.keep(p.held())
		select {
		case <-stop:
			return
		case <-p.wake:
		case <-again.C:
		}
	}
}

// update opens what is missing and closes what is not wanted any more. What is open and wanted is left alone.
func (p *ports) update() {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := listenPortsOf.Of(p.core.Tables())
	for i, s := range p.bases {
		extra := wanted.http
		if s.tls {
			extra = wanted.https
		}
		// Two addresses of the same host have the ports of the cluster once.
		first := slices.IndexFunc(p.bases, func(o *sockets) bool { return o.tls == s.tls && o.host == s.host }) == i
		s.update(func(name uint16) bool { return first && slices.Contains(extra, name) }, extra, p.isBase)
	}
}

// held returns the sockets that a holder should have, and whether these are all: addresses come one after the other when the
// process starts, and go when it ends.
func (p *ports) held() (all map[hold.Socket]syscall.Conn, settled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all = map[hold.Socket]syscall.Conn{}
	for _, s := range p.bases {
		for _, at := range s.open {
			if opened, ok := at.Listener.(syscall.Conn); ok && at.held != (hold.Socket{}) {
				all[at.held] = opened
			}
		}
	}
	return all, len(p.bases) > 0 && time.Since(p.changed) > settleTime
}

// isBase reports whether a number is that of one of the node's usual ports.
func (p *ports) isBase(number uint16) bool {
	return slices.ContainsFunc(p.bases, func(s *sockets) bool { return s.number == number })
}

// FillStatus names the ports that are listened on, and those that are to be and are not.
func (p *ports) FillStatus(status *edgev1.GetStatusResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.bases {
		status.PortProblems = append(status.PortProblems, s.problems()...)
		for _, at := range s.open {
			status.Ports = append(status.Ports, uint32(portOf(at.Addr())))
		}
	}
	slices.Sort(status.Ports)
	status.Ports = slices.Compact(status.Ports)
}

// listen makes the listener of an address of one of Caddy's servers. The address itself must be free where it is one
// without TLS: a node that cannot serve is to end. One with TLS may come later.
func (p *ports) listen(ctx context.Context, overTLS bool, host string, number uint16, config net.ListenConfig) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &sockets{
		ports: p, tls: overTLS, host: host, number: number, config: config,
		open: map[uint16]*socket{}, failed: map[uint16]string{}, accepted: make(chan *socketConn), done: make(chan struct{}),
	}
	if err := s.openPort(ctx, s.baseName()); err != nil && !overTLS {
		return nil, err
	}
	p.bases = append(p.bases, s)
	p.changed = time.Now()
	p.look()
	return s, nil
}

func (p *ports) forget(s *sockets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bases = slices.DeleteFunc(p.bases, func(o *sockets) bool { return o == s })
	s.closeAll()
	p.changed = time.Now()
	p.look()
}

func hostPort(host string, number uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(number)))
}
