package listen

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/hold"
)

func init() { core.RegisterCapability("http3-v1") }

// http3Site stands for a site that is reached over HTTP/3.
type http3Site struct{}

var (
	offered   = new(http3Site)
	http3Part = core.PartOf("site-https", "http3", func(_ *core.Core, _ string, m *configv1.SiteHttps) (*http3Site, error) {
		if !m.GetHttp3() {
			return nil, nil
		}
		return offered, nil
	})
	http3Ports = core.NewComponent("http3", func(c *core.Core) *http3State {
		return &http3State{
			core: c, beside: map[string]besidePort{}, open: map[string]*quicPort{}, looked: exchange.NewTables(), wanting: map[uint32]struct{}{},
		}
	})
)

// How often it is looked whether sites want HTTP/3, and how long a port that cannot be opened is left alone.
const (
	http3Look  = 250 * time.Millisecond
	http3Retry = 5 * time.Second
)

// http3State opens a UDP port beside each port of TLS while a site wants HTTP/3.
type http3State struct {
	core    *core.Core
	handler atomic.Pointer[http.Handler]
	// Ports that are open, by their numbers.
	announced atomic.Pointer[map[uint16]bool]

	mu sync.Mutex
	// Sockets of TLS by their address.
	beside map[string]besidePort
	open   map[string]*quicPort
	secret *quicSecret
	// What was looked at last, and the sites there that want HTTP/3, by their numbers.
	looked  *exchange.Tables
	wanting map[uint32]struct{}
	failed  map[string]time.Time
	ended   bool
	// Ports whose clients are hearing of their end.
	ending sync.WaitGroup
}

// besidePort is a socket of TLS.
type besidePort struct {
	wrapper *Wrapper
	address net.Addr
	named   uint16
}

// AnswerHTTP3 says who answers requests over HTTP/3, for as long as nobody else does.
func AnswerHTTP3(c *core.Core, handler http.Handler) {
	http3Ports.Of(c).handler.Store(&handler)
}

// ServeHTTP answers a request with whoever answers now: ports outlive configurations of Caddy.
func (s *http3State) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

// openedTLS notes a socket of TLS; named is its port as configuration has it.
func (w *Wrapper) openedTLS(address net.Addr, named uint16) {
	s := http3Ports.Of(w.core)
	s.mu.Lock()
	s.beside[address.String()] = besidePort{w, address, named}
	s.mu.Unlock()
}

// closedTLS notes the end of one.
func (w *Wrapper) closedTLS(address net.Addr) {
	s := http3Ports.Of(w.core)
	s.mu.Lock()
	delete(s.beside, address.String())
	s.mu.Unlock()
}

// Run opens and closes ports as sites and sockets come and go.
func (s *http3State) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(http3Look)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.follow(time.Now())
		}
	}
}

// follow brings the ports to what is wanted now.
func (s *http3State) follow(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	defer s.announce()
	wanted := s.handler.Load() != nil && s.wantedBy(s.core.Tables())
	for address, port := range s.open {
		if _, beside := s.beside[address]; !wanted || !beside {
			delete(s.open, address)
			s.ending.Go(port.end)
			if !wanted {
				holderOf.Of(s.core).release(besideOf(port.address()))
			}
		}
	}
	if !wanted {
		return
	}
	for address, beside := range s.beside {
		if s.open[address] != nil || now.Before(s.failed[address]) {
			continue
		}
		port, err := s.listen(beside)
		if err != nil {
			if s.failed == nil {
				s.failed = map[string]time.Time{}
			}
			s.failed[address] = now.Add(http3Retry)
			s.core.Log().Warn("cannot open a UDP port for HTTP/3", zap.String("address", address), zap.Error(err))
			continue
		}
		delete(s.failed, address)
		s.open[address] = port
	}
}

// wantedBy reports whether some site wants HTTP/3. In proxy_protocol mode nobody can: datagrams name no client.
func (s *http3State) wantedBy(tables *exchange.Tables) bool {
	if proxyMode(tables) {
		return false
	}
	if tables != s.looked {
		for number, plan := range tables.PlansSince(s.looked) {
			if plan != nil && http3Part.Of(plan) != nil {
				s.wanting[number] = struct{}{}
			} else {
				delete(s.wanting, number)
			}
		}
		s.looked = tables
	}
	return len(s.wanting) > 0
}

func (s *http3State) listen(beside besidePort) (*quicPort, error) {
	decider := core.Find[exchange.TLS](s.core)
	if decider == nil {
		return nil, errNoTLS
	}
	if s.secret == nil {
		s.secret = readQUICSecret(s.core.StateDir())
	}
	socket, err := holderOf.Of(s.core).listenUDP(beside.address)
	if err != nil {
		return nil, err
	}
	return beside.wrapper.serveQUIC(socket, beside.named, decider, s.secret, s)
}

// announce says which ports are open.
func (s *http3State) announce() {
	announced := map[uint16]bool{}
	for _, port := range s.open {
		announced[port.real] = true
	}
	s.announced.Store(&announced)
}

// End closes the ports when the process ends: clients connect anew at once. Those of sockets that were closed before are
// closing already, and have the same time.
func (s *http3State) End() {
	s.mu.Lock()
	s.ended = true
	for _, port := range s.open {
		s.ending.Go(port.end)
	}
	s.open = map[string]*quicPort{}
	s.mu.Unlock()
	s.ending.Wait()
}

func (p *quicPort) end() {
	ctx, cancel := context.WithTimeout(context.Background(), quicFarewell)
	defer cancel()
	p.close(ctx)
}

// held adds the ports to the sockets that a holder should have.
func (s *http3State) held(all map[hold.Socket]syscall.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, port := range s.open {
		if opened, ok := port.socket.(syscall.Conn); ok {
			all[besideOf(port.address())] = opened
		}
	}
}

// FillStatus warns of ports that cannot be opened.
func (s *http3State) FillStatus(status *edgev1.GetStatusResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address := range s.failed {
		if _, beside := s.beside[address]; beside && s.open[address] == nil {
			status.Warnings = append(status.Warnings, "HTTP/3 has no UDP port at "+address+": it cannot be opened")
		}
	}
}

// AltSvc is the response stage that tells clients of HTTP/3 where their site has it, and keeps from them what an origin says
// of its own ports. It is the port that they asked, as they know it: in front of the node it may have another number.
func AltSvc(c *core.Core) exchange.ResponseStage {
	s := http3Ports.Of(c)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		delete(a.Header, "Alt-Svc")
		if x.In.TLS == nil || x.Plan == nil || http3Part.Of(x.Plan) == nil {
			return
		}
		if announced := s.announced.Load(); announced != nil && (*announced)[x.In.Port] {
			a.Header["Alt-Svc"] = altSvcOf(x.In.HostRaw)
		}
	}
}

var altSvcUsual = []string{`h3=":443"; ma=86400`}

// altSvcOf announces the port of a host as a client sent it.
func altSvcOf(host string) []string {
	_, text, err := net.SplitHostPort(host)
	if err != nil {
		return altSvcUsual
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return altSvcUsual
	}
	return []string{`h3=":` + strconv.FormatUint(port, 10) + `"; ma=86400`}
}
