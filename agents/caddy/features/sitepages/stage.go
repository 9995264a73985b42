package sitepages

import (
	"net/http"
	"strconv"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Response puts the pages of the site, and those of the platform, in the place of what a client would get.
func Response(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if a.Status < http.StatusBadRequest || x.Local || exchange.IsGRPC(x) {
			return
		}
		switch a.Code {
		case pages.UnknownHost:
			putPlatform(x, a, platform.Of(x.Tables).unknownHost)
			return
		case pages.SiteDisabled:
			putPlatform(x, a, platform.Of(x.Tables).siteDisabled)
			return
		case pages.Maintenance:
			// It has a page of its own.
			return
		}
		if x.Plan == nil {
			return
		}
		if s := part.Of(x.Plan); s != nil {
			s.put(x, a)
		}
	}
}

func putPlatform(x *exchange.Exchange, a *exchange.Answer, template *pages.Template) {
	if template != nil {
		template.Put(x, a, a.Status)
	}
}

func (s *settings) put(x *exchange.Exchange, a *exchange.Answer) {
	p := s.of(a.Status)
	if p == nil || p.redirect != nil && p.redirect.isAsked(x) {
		return
	}
	status, from := a.Status, a.From
	if from == exchange.FromEdge {
		// Challenges have no code.
		if a.Code == "" || pages.ForPrograms(a.Code) {
			return
		}
	} else {
		if !s.intercept || a.Upgrade != nil || isGRPC(x, a) {
			return
		}
		intercept(x, a)
	}
	a.Replaces(status, from)
	if p.redirect == nil {
		if p.status != 0 {
			a.Status = p.status
		}
		p.template.Put(x, a, status)
		return
	}
	h := a.Header
	// A redirect has no body.
	for _, name := range []string{"Content-Type", "Content-Security-Policy", "X-Content-Type-Options"} {
		delete(h, name)
	}
	a.Status = http.StatusFound
	a.Bytes = nil
	h["Location"] = []string{p.redirect.location(x, status)}
	h["Cache-Control"] = noStore
}

var noStore = []string{"no-store"}

// kept are the headers of an origin's error response that mean something without its body. Those of CORS stay, too.
var kept = []string{"Www-Authenticate", "Allow", "Retry-After", "Set-Cookie"}

// intercept makes an error response of the edge of an origin's.
func intercept(x *exchange.Exchange, a *exchange.Answer) {
	var names []string
	var values [][]string
	for name, value := range a.Header {
		if keeps(name) {
			names, values = append(names, name), append(values, value)
		}
	}
	// Ends the body of the origin.
	pages.Respond(x, a.Status, pages.OriginError)
	for i, name := range names {
		a.Header[name] = values[i]
	}
}

func keeps(name string) bool {
	if strings.HasPrefix(name, "Access-Control-") {
		return true
	}
	for _, each := range kept {
		if name == each {
			return true
		}
	}
	return false
}

func isGRPC(x *exchange.Exchange, a *exchange.Answer) bool {
	const grpc = "application/grpc"
	return hasType(x.In.Header["Content-Type"], grpc) || hasType(a.Header["Content-Type"], grpc)
}

func hasType(values []string, prefix string) bool {
	return len(values) > 0 && len(values[0]) >= len(prefix) && strings.EqualFold(values[0][:len(prefix)], prefix)
}

// isAsked reports whether a request is for the target of the redirect: it would go round in circles.
func (r *redirect) isAsked(x *exchange.Exchange) bool {
	return r.path != "" && (x.In.Target.Path == r.path || x.In.Target.Canonical == r.path)
}

func (r *redirect) location(x *exchange.Exchange, status int) string {
	if !r.values {
		return r.url
	}
	// Ids have no other characters; those of a client are checked.
	id := strings.ReplaceAll(x.In.ID, ":", "%3A")
	return strings.NewReplacer("{{status}}", strconv.Itoa(status), "{{request_id}}", id).Replace(r.url)
}
