package handshake

import (
	"net/http"
	"strconv"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// SameName is the stage that refuses requests for another host than the one that the handshake was about: the connection
// was made by the certificate and under the policy of that one. Over a connection that means the node itself nothing but
// its health is answered.
func SameName(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		h := x.In.Handshake
		if h == nil || !h.Health && x.In.Host == h.ServerName && (x.Plan == nil || x.Plan.SiteID == h.SiteID) {
			return nil
		}
		return pages.Respond(x, http.StatusMisdirectedRequest, pages.SNIHostMismatch)
	}
}

// ForceHTTPS is the stage that sends plain requests to HTTPS where the site says so, and rules do not say otherwise: a rule
// that asks for it does so for excluded names as well. Names that no certificate of the site covers, and those that wait for one,
// are served as they are, whoever asks; others that cannot be reached over HTTPS are refused where a rule asks. It comes after all rules, and what those
// defer already stands. A request that shows no certificate where one is required goes no further either. Questions of
// certificate authorities are spared.
func ForceHTTPS(c *core.Core) exchange.Stage {
	terminator := terminators.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		plain := x.In.TLS == nil
		if x.In.Secure() && !plain || x.HasDeferred() {
			return nil
		}
		s, override := siteHTTPS.Of(x.Plan), x.Overrides.ForceHTTPS
		if s == nil && override != exchange.On {
			return nil
		}
		if validation, _ := exchange.Validation.Known(x); validation {
			return nil
		}
		waits := s != nil && s.pending.have(x.Plan, x.In.Host)
		if s != nil && !waits && (s.redirect != nil || override == exchange.On) {
			waits = !terminator.covers(s, x.In.Host)
		}
		reached := s != nil && !waits && s.reaches(x.Plan, x.In.Host)
		set := reached && s.redirect != nil && !s.redirect.excluded.have(x.Plan, x.In.Host)
		switch {
		case x.In.Secure() || waits || !override.Or(set):
			if plain && s != nil && s.client != nil && s.client.required {
				x.Defer(requireCertificate)
			}
		case reached:
			x.Defer(giveRedirect)
		default:
			x.Defer(denyPlain)
		}
		return nil
	}
}

// reaches reports whether a host of the site that waits for no certificate can be reached over HTTPS.
func (s *site) reaches(p *exchange.Plan, host string) bool {
	_, known := core.DomainOf(p, host)
	return known && core.HTTPSPortOf(p) != 0
}

func denyPlain(x *exchange.Exchange) *exchange.Answer {
	return pages.Respond(x, http.StatusServiceUnavailable, pages.PolicyDenied)
}

func requireCertificate(x *exchange.Exchange) *exchange.Answer {
	// Clients offer certificates to new connections alone.
	x.CloseAfter()
	return pages.Respond(x, http.StatusForbidden, pages.ClientCertRequired)
}

func giveRedirect(x *exchange.Exchange) *exchange.Answer {
	status, port := http.StatusMovedPermanently, portText(core.HTTPSPortOf(x.Plan))
	if r := siteHTTPS.Of(x.Plan).redirect; r != nil {
		status, port = r.status, r.port
	}
	location := append(make([]byte, 0, len("https://")+len(x.In.Host)+len(port)+len(x.In.Target.Raw)), "https://"...)
	location = append(append(location, x.In.Host...), port...)
	location = exchange.AppendEncoded(location, x.In.Target.Raw, visible)
	a := x.Respond(status)
	a.Header["Location"] = []string{string(location)}
	return a
}

// visible are bytes that a client may see in an address as it sent them.
func visible(c byte) bool { return c > ' ' && c < 0x7f }

func portText(port uint16) string {
	if port == core.HTTPSPort {
		return ""
	}
	return ":" + strconv.Itoa(int(port))
}

// StrictTransport is the response stage that tells browsers to come over HTTPS alone. What an origin says of it is left
// out where the site does.
func StrictTransport(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if !x.In.Secure() || x.Plan == nil {
			return
		}
		// Without a handshake here a trusted proxy ended the TLS of the client.
		if h := x.In.Handshake; h != nil && (h.Health || x.Plan.SiteID != h.SiteID || x.In.Host != h.ServerName) || h == nil && x.In.TLS != nil {
			return
		}
		if s := siteHTTPS.Of(x.Plan); s != nil && s.hsts != nil {
			a.Header["Strict-Transport-Security"] = s.hsts
		}
	}
}
