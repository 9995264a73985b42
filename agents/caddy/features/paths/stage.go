package paths

import (
	"net/http"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/pages"
)

// kind is that of the settings for requests of a site. Other features have parts of it, too.
const kind = "site-requests"

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"path-normalization-v1"}})
}

// settings is the part of a site that normalizes paths.
type settings struct{}

var part = core.PartOf(kind, "paths", func(_ *core.Core, _ string, m *configv1.SiteRequests) (*settings, error) {
	if !m.GetPathNormalization() {
		return nil, nil
	}
	return new(settings), nil
})

// blocked counts requests whose path origins resolve in different ways.
var blocked = exchange.NewCount("blocked.path")

// Stage puts the normal path in the place of the one that the client sent.
func Stage(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if part.Of(x.Plan) == nil {
			return nil
		}
		normal, ok := x.In.Target.Normal()
		if !ok {
			x.Defer(refuse)
			return nil
		}
		x.In.Target = normal
		return nil
	}
}

func refuse(x *exchange.Exchange) *exchange.Answer {
	x.Mark(blocked)
	return pages.Respond(x, http.StatusBadRequest, pages.PathAmbiguous)
}
