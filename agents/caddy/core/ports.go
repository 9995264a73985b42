package core

import (
	"fmt"
	"math"
	"slices"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// The node's usual ports as configuration names them, whatever their numbers: those of sites that name none.
const (
	HTTPPort  uint16 = 80
	HTTPSPort uint16 = 443
)

// sitePorts is where a site answers.
type sitePorts struct{ http, https []uint16 }

var portsOf = PartOf(siteKind, "ports", compilePorts)

// compilePorts returns nil for a site that names no ports. One that names ports of one protocol has none of the other.
func compilePorts(_ *Core, _ string, site *configv1.Site) (*sitePorts, error) {
	if len(site.GetHttpPorts()) == 0 && len(site.GetHttpsPorts()) == 0 {
		return nil, nil
	}
	http, err := Ports(site.GetHttpPorts())
	if err != nil {
		return nil, err
	}
	https, err := Ports(site.GetHttpsPorts())
	return &sitePorts{http, https}, err
}

// Ports reads the numbers of ports.
func Ports(numbers []uint32) ([]uint16, error) {
	ports := make([]uint16, 0, len(numbers))
	for _, number := range numbers {
		if number == 0 || number > math.MaxUint16 {
			return nil, fmt.Errorf("there is no port %d", number)
		}
		ports = append(ports, uint16(number))
	}
	return ports, nil
}

// ServesPort reports whether a site answers on a port, as configuration names it, with or without TLS. Port 0 stands for
// listeners that sites are not bound to.
func ServesPort(plan *exchange.Plan, port uint16, tls bool) bool {
	if port == 0 {
		return true
	}
	ports := portsOf.Of(plan)
	switch {
	case ports != nil && tls:
		return slices.Contains(ports.https, port)
	case ports != nil:
		return slices.Contains(ports.http, port)
	case tls:
		return port == HTTPSPort
	}
	return port == HTTPPort
}

// HTTPSPortOf is the port over which a site is reached with TLS, the usual one where it has that; 0 for none.
func HTTPSPortOf(plan *exchange.Plan) uint16 {
	if ServesPort(plan, HTTPSPort, true) {
		return HTTPSPort
	}
	if ports := portsOf.Of(plan); ports != nil && len(ports.https) > 0 {
		return ports.https[0]
	}
	return 0
}
