package encode

import (
	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// Stage is the stage before an answer is fetched. Where the edge compresses, origins are asked for what it can compress,
// and tags that it weakened are undone.
func Stage(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if exchange.IsGRPC(x) {
			return nil
		}
		if of(x).any() {
			x.Out.Identity = true
			strengthen(x, "If-None-Match")
			strengthen(x, "If-Match")
		} else if x.Overrides.Gzip == exchange.Off {
			// The site leaves compressing to its origins, and a rule does not want it.
			x.Out.Identity = true
		}
		return nil
	}
}

// Response is the response stage that compresses.
func Response(c *core.Core) exchange.ResponseStage {
	encoders := component.Of(c)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if x.Plan == nil || x.In.Upgrade || exchange.IsGRPC(x) {
			return
		}
		s := of(x)
		if !s.any() {
			return
		}
		list := s.fits(x, a)
		if list.n == 0 {
			return
		}
		vary(a.Header)
		if partial(a) {
			// RFC 9110 §15.3.7: a part varies as the whole would. It stays as it is.
			return
		}
		if notModified(a) {
			weakenUnchanged(x, a)
			return
		}
		list.welcome(readAccepted(x.In.Header["Accept-Encoding"]))
		if x.In.Method == "HEAD" || a.Body == nil {
			if list.n > 0 {
				encodedHeader(a.Header)
			}
			return
		}
		for _, coding := range list.all() {
			if level := s.codings[coding].level; encoders.take(coding, level, networkOf(x)) {
				encodedHeader(a.Header)
				a.Header["Content-Encoding"] = names[coding]
				a.Body = encoders.encode(x, a.Body, coding, level)
				return
			}
		}
	}
}

var names = [...][]string{exchange.Zstd: {"zstd"}, exchange.Brotli: {"br"}, exchange.Gzip: {"gzip"}}
