package core

import (
	"cmp"
	"strings"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/pmap"
)

// siteName is a domain of the exact, wildcard or suffix form.
type siteName struct {
	form configv1.DomainForm
	name string
}

// names find the number of a site; tables have its plan.
type names struct {
	owner *exchange.Owner
	// By the id of the site.
	ids pmap.Map[uint32]
	// By what hosts it has.
	exact, wildcard, suffix pmap.Map[uint32]
	patterns                patternIndex
}

var siteNames = exchange.NewSetting("names", &names{})

func namesOf(t *exchange.Tables) *names { return siteNames.Of(t) }

// PlanOfHost returns the plan of the site that has a host, nil when none has it. The host is in normalised form.
func PlanOfHost(t *exchange.Tables, host string) *exchange.Plan {
	if number := namesOf(t).find(host); number != 0 {
		return t.Plan(number)
	}
	return nil
}

// PlanOfSite returns the plan of a site by its id, nil when there is no such site.
func PlanOfSite(t *exchange.Tables, id string) *exchange.Plan {
	if number, ok := namesOf(t).ids.Get(id); ok {
		return t.Plan(number)
	}
	return nil
}

// SiteCount is the number of sites, disabled ones included.
func SiteCount(t *exchange.Tables) int { return namesOf(t).ids.Len() }

func (t *names) form(form configv1.DomainForm) *pmap.Map[uint32] {
	switch form {
	case configv1.DomainForm_DOMAIN_FORM_WILDCARD:
		return &t.wildcard
	case configv1.DomainForm_DOMAIN_FORM_SUFFIX:
		return &t.suffix
	default:
		return &t.exact
	}
}

// find returns the number of the site of a normalised host: exact names, then wildcards of one label, then the longest
// suffix, then patterns in their order; 0 when none has it.
func (t *names) find(host string) uint32 {
	if number, ok := t.exact.Get(host); ok {
		return number
	}
	dot := strings.IndexByte(host, '.')
	if dot >= 0 {
		if number, ok := t.wildcard.Get(host[dot+1:]); ok {
			return number
		}
		if t.suffix.Len() > 0 {
			for parent := host; dot >= 0; dot = strings.IndexByte(parent, '.') {
				parent = parent[dot+1:]
				if number, ok := t.suffix.Get(parent); ok {
					return number
				}
			}
		}
	}
	return t.patterns.find(host)
}

// names returns the names of the next tables, to be changed.
func (e *Edit) names() *names {
	n := namesOf(e.Tables)
	if n.owner != e.Owner() {
		own := *n
		own.owner = e.Owner()
		n = &own
		siteNames.Set(e.Tables, n)
	}
	return n
}

func (e *Edit) addNames(s *site) {
	names := e.names()
	for _, n := range s.names {
		e.claim(n, s)
	}
	for _, p := range s.patterns {
		names.patterns.add(e.Owner(), p)
	}
}

func (e *Edit) removeNames(s *site) {
	names := e.names()
	for _, n := range s.names {
		e.release(n, s)
	}
	for _, p := range s.patterns {
		names.patterns.remove(e.Owner(), p)
	}
}

// older reports whether a site comes before the one with another number.
func (e *Edit) older(s *site, number uint32) bool {
	other := siteOf(e.Tables.Plan(number))
	return compareSites(s.createdAtMs, other.createdAtMs, s.plan.SiteID, other.plan.SiteID) < 0
}

func compareSites(createdA, createdB int64, idA, idB string) int {
	return cmp.Or(cmp.Compare(createdA, createdB), cmp.Compare(idA, idB))
}

// claim gives a name to a site. The console lets a name belong to one site only, but while a name moves between sites
// both may claim it for a moment, in either order: the older site then keeps it until it lets go.
func (e *Edit) claim(n siteName, s *site) {
	names := e.names().form(n.form)
	holder, held := names.Get(n.name)
	if !held || holder == s.plan.Number {
		*names = names.Set(e.Owner(), n.name, s.plan.Number)
		return
	}
	claims := e.state.contested[n]
	if claims == nil {
		claims = []uint32{holder}
	}
	for _, other := range claims {
		if other == s.plan.Number {
			return
		}
	}
	e.state.contested[n] = append(claims, s.plan.Number)
	if e.older(s, holder) {
		*names = names.Set(e.Owner(), n.name, s.plan.Number)
	}
}

func (e *Edit) release(n siteName, s *site) {
	names := e.names().form(n.form)
	claims, contested := e.state.contested[n]
	if !contested {
		if holder, held := names.Get(n.name); held && holder == s.plan.Number {
			*names = names.Delete(e.Owner(), n.name)
		}
		return
	}
	rest := make([]uint32, 0, len(claims))
	var first *site
	for _, other := range claims {
		if other == s.plan.Number {
			continue
		}
		rest = append(rest, other)
		if first == nil || !e.older(first, other) {
			first = siteOf(e.Tables.Plan(other))
		}
	}
	if len(rest) > 1 {
		e.state.contested[n] = rest
	} else {
		delete(e.state.contested, n)
	}
	*names = names.Set(e.Owner(), n.name, first.plan.Number)
}
