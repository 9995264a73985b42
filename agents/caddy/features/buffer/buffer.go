package buffer

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/pages"
)

const (
	kind = "site-requests"

	maxMemory = 64 << 10
	maxSpool  = 16 << 20
)

// longest is how many seconds an edge waits for the client of a body in all.
var longest = core.NewOption("max_body_seconds", 6*60*60, func(seconds int) error {
	if seconds < 1 {
		return errors.New("must be at least 1")
	}
	return nil
})

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"request-buffering-v1"}})
}

// settings are those of a site that differs from the default.
type settings struct{}

var part = core.PartOf(kind, "streamed bodies", func(_ *core.Core, _ string, m *configv1.SiteRequests) (*settings, error) {
	if m.GetStreamBodies() {
		return &settings{}, nil
	}
	return nil, nil
})

// engine counts what became of bodies.
type engine struct {
	core                        *core.Core
	whole, long, full, streamed atomic.Uint64
}

var component = core.NewComponent("request buffering", func(c *core.Core) *engine { return &engine{core: c} })

// Stage sets the limits of the node for a body, and whether the site wants it as it comes.
func Stage(c *core.Core) exchange.Stage {
	most := time.Duration(longest.Of(c)) * time.Second
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.Body.Exists() && !exchange.IsGRPC(x) {
			x.Body.Longest = most
			x.Body.Streamed = part.Of(x.Plan) != nil
		}
		return nil
	}
}

// Gather reads a body before an origin is asked.
func Gather(c *core.Core) exchange.Stage {
	e := component.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if !x.Body.Exists() {
			return nil
		}
		return e.gather(x)
	}
}

func (e *engine) gather(x *exchange.Exchange) *exchange.Answer {
	if x.Body.Streamed || x.In.Upgrade {
		e.streamed.Add(1)
		return nil
	}
	whole, err := x.Body.Gather(maxMemory)
	if !whole && err == nil {
		whole, err = x.Body.GatherMore(maxSpool, core.Spool.Of(e.core).Of(x.Plan.SiteID))
	}
	switch {
	case err != nil:
		return pages.RespondToBody(x, err)
	case whole:
		e.whole.Add(1)
	case x.Body.InspectedLength() < maxSpool:
		e.full.Add(1)
	default:
		e.long.Add(1)
	}
	return nil
}

// WriteMetrics shows what became of bodies.
func (e *engine) WriteMetrics(w io.Writer) {
	fmt.Fprint(w, "# HELP svc_edge_request_bodies_total Request bodies by how their origin got them: whole; streamed beyond 16 MiB; streamed because the spool was full; streamed because the site turned request buffering off.\n# TYPE svc_edge_request_bodies_total counter\n")
	for _, figure := range []struct {
		name  string
		value uint64
	}{
		{"whole", e.whole.Load()}, {"long", e.long.Load()}, {"spool_full", e.full.Load()}, {"unbuffered", e.streamed.Load()},
	} {
		fmt.Fprintf(w, "svc_edge_request_bodies_total{sent=%q} %d\n", figure.name, figure.value)
	}
}
