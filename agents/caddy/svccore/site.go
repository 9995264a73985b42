package svccore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svcorigin"
)

// Site is one version of a site, immutable but for the pool that is compiled when the first request needs it: most of
// a hundred thousand sites are idle at any time, and their pools would be the larger part of the memory.
type Site struct {
	ID string
	// Disabled sites keep their names and answer 503.
	Disabled bool
	// WebSocket says whether upgrades to WebSocket reach the origins.
	WebSocket bool
	// BodyLimit is the largest request body in bytes; 0 = unlimited.
	BodyLimit int64
	Counter   *Counter
	// Beside what else each request reads.
	pool atomic.Pointer[svcorigin.Pool]

	createdAtMs int64
	names       []siteName
	patterns    []*pattern
	hash        [sha256.Size]byte
	body        []byte
}

// siteName is a domain of the exact, wildcard or suffix form.
type siteName struct {
	form configv1.DomainForm
	name string
}

// Pool returns the origin pool of the site.
func (s *Site) Pool(health *svcorigin.State) (*svcorigin.Pool, error) {
	if p := s.pool.Load(); p != nil {
		return p, nil
	}
	var message configv1.Site
	if err := proto.Unmarshal(s.body, &message); err != nil {
		return nil, err
	}
	p, err := svcorigin.Compile(s.ID, message.GetOrigins(), message.GetPool(), health)
	if err != nil {
		return nil, err
	}
	// Two first requests at once must agree on one pool, which holds their common round-robin state.
	if !s.pool.CompareAndSwap(nil, p) {
		p = s.pool.Load()
	}
	return p, nil
}

func compileSite(c *Core, id string, body []byte) (apply, error) {
	if id == "" {
		return nil, errors.New("a site needs an id")
	}
	site := &Site{ID: id, hash: sha256.Sum256(body), body: body}
	if known, ok := c.tables.Load().sites.get(id); ok && known.hash == site.hash {
		return func(e *edit) { e.putSite(known) }, nil
	}
	var message configv1.Site
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not a site: %w", err)
	}
	site.Disabled = message.GetDisabled()
	site.WebSocket = message.GetPool().GetWebsocket()
	site.BodyLimit = int64(min(message.GetRequestBodyLimit(), math.MaxInt64))
	site.createdAtMs = message.GetCreatedAtMs()
	if err := site.compileDomains(message.GetDomains()); err != nil {
		return nil, err
	}
	// The pool is compiled to find its faults now, and thrown away.
	if !site.Disabled {
		if _, err := svcorigin.Compile(id, message.GetOrigins(), message.GetPool(), c.Health); err != nil {
			return nil, err
		}
	}
	return func(e *edit) { e.putSite(site) }, nil
}

func (s *Site) compileDomains(domains []*configv1.Domain) error {
	s.names = make([]siteName, 0, len(domains))
	for i, d := range domains {
		switch d.GetForm() {
		case configv1.DomainForm_DOMAIN_FORM_EXACT, configv1.DomainForm_DOMAIN_FORM_WILDCARD, configv1.DomainForm_DOMAIN_FORM_SUFFIX:
			if host, kind := NormalizeHost(d.GetName()); kind == HostInvalid || host != d.GetName() {
				return fmt.Errorf("domain %q is not a lower-case host name", d.GetName())
			}
			s.names = append(s.names, siteName{d.GetForm(), d.GetName()})
		case configv1.DomainForm_DOMAIN_FORM_PATTERN:
			p, err := compilePattern(d.GetName(), i)
			if err != nil {
				return err
			}
			p.site = s
			s.patterns = append(s.patterns, p)
		default:
			return fmt.Errorf("domain %q has form %d, which needs a capability this node lacks", d.GetName(), d.GetForm())
		}
	}
	return nil
}

// hostTable finds the site of a host.
type hostTable struct {
	exact, wildcard, suffix pmap[*Site]
	patterns                patternIndex
}

func (t *hostTable) names(form configv1.DomainForm) *pmap[*Site] {
	switch form {
	case configv1.DomainForm_DOMAIN_FORM_WILDCARD:
		return &t.wildcard
	case configv1.DomainForm_DOMAIN_FORM_SUFFIX:
		return &t.suffix
	default:
		return &t.exact
	}
}

// find returns the site of a normalised host: exact names, then wildcards of one label, then the longest suffix, then
// patterns in their order; nil when none has it.
func (t *hostTable) find(host string) *Site {
	if site, ok := t.exact.get(host); ok {
		return site
	}
	dot := strings.IndexByte(host, '.')
	if dot >= 0 {
		if site, ok := t.wildcard.get(host[dot+1:]); ok {
			return site
		}
		if t.suffix.size > 0 {
			for parent := host; dot >= 0; dot = strings.IndexByte(parent, '.') {
				parent = parent[dot+1:]
				if site, ok := t.suffix.get(parent); ok {
					return site
				}
			}
		}
	}
	return t.patterns.find(host)
}

// putSite makes site the current version of its id.
func (e *edit) putSite(site *Site) {
	if old, ok := e.tables.sites.get(site.ID); ok {
		if old == site {
			return
		}
		e.removeNames(old)
		site.Counter = old.Counter
	}
	if site.Counter == nil {
		site.Counter = e.core.Stats.counter(site.ID)
	}
	e.tables.sites = e.tables.sites.set(e.nodes, site.ID, site)
	for _, n := range site.names {
		e.claim(n, site)
	}
	for _, p := range site.patterns {
		e.tables.hosts.patterns.add(e.nodes, p)
	}
}

func removeSite(e *edit, id string) {
	if old, ok := e.tables.sites.get(id); ok {
		e.removeNames(old)
		e.tables.sites = e.tables.sites.delete(e.nodes, id)
	}
}

func (e *edit) removeNames(site *Site) {
	for _, n := range site.names {
		e.release(n, site)
	}
	for _, p := range site.patterns {
		e.tables.hosts.patterns.remove(e.nodes, p)
	}
}

// claim gives a name to a site. The console lets a name belong to one site only, but while a name moves between sites
// both may claim it for a moment, in either order: the older site then keeps it until it lets go.
func (e *edit) claim(n siteName, site *Site) {
	names := e.tables.hosts.names(n.form)
	holder, held := names.get(n.name)
	if !held || holder == site {
		*names = names.set(e.nodes, n.name, site)
		return
	}
	claims := e.state.contested[n]
	if claims == nil {
		claims = []*Site{holder}
	}
	for _, other := range claims {
		if other == site {
			return
		}
	}
	e.state.contested[n] = append(claims, site)
	if compareSites(site, holder) < 0 {
		*names = names.set(e.nodes, n.name, site)
	}
}

func (e *edit) release(n siteName, site *Site) {
	names := e.tables.hosts.names(n.form)
	claims, contested := e.state.contested[n]
	if !contested {
		if holder, _ := names.get(n.name); holder == site {
			*names = names.delete(e.nodes, n.name)
		}
		return
	}
	rest := make([]*Site, 0, len(claims))
	var first *Site
	for _, other := range claims {
		if other == site {
			continue
		}
		rest = append(rest, other)
		if first == nil || compareSites(other, first) < 0 {
			first = other
		}
	}
	if len(rest) > 1 {
		e.state.contested[n] = rest
	} else {
		delete(e.state.contested, n)
	}
	*names = names.set(e.nodes, n.name, first)
}
