package handshake

import "edge.svc/caddy/exchange"

// Covers is described by exchange.Certificates.
func (t *Terminator) Covers(p *exchange.Plan, host string) bool {
	s := siteHTTPS.Of(p)
	return s != nil && !s.pending.have(p, host) && s.reaches(p, host) && t.covers(s, host)
}
