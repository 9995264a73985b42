package core

import (
	"strings"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Domain is one domain of a site, as its entries name it.
type Domain struct {
	Form configv1.DomainForm
	Name string
}

// DomainOf finds the domain by which a site has a host, in the order in which sites are found: exact, wildcard, the
// longest suffix, patterns in their order. The host is in normalised form.
func DomainOf(p *exchange.Plan, host string) (found Domain, ok bool) {
	s := siteOf(p)
	_, parent, _ := strings.Cut(host, ".")
	for _, n := range s.names {
		switch {
		case n.form == configv1.DomainForm_DOMAIN_FORM_EXACT && n.name == host:
			return Domain{n.form, n.name}, true
		case n.form == configv1.DomainForm_DOMAIN_FORM_WILDCARD && n.name == parent:
			found, ok = Domain{n.form, n.name}, true
		case n.form == configv1.DomainForm_DOMAIN_FORM_SUFFIX && found.Form != configv1.DomainForm_DOMAIN_FORM_WILDCARD &&
			len(n.name) > len(found.Name) && isBelow(host, n.name):
			found, ok = Domain{n.form, n.name}, true
		}
	}
	if ok {
		return found, true
	}
	for _, pattern := range s.patterns {
		if pattern.matches(host) {
			return Domain{configv1.DomainForm_DOMAIN_FORM_PATTERN, pattern.text}, true
		}
	}
	return Domain{}, false
}

func isBelow(host, name string) bool {
	rest, ok := strings.CutSuffix(host, name)
	return ok && strings.HasSuffix(rest, ".")
}
