package edge

import (
	"net/http"
	"sync"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// local serves requests of the node itself, which come over no connection.
type local struct {
	core *core.Core
	// Once all components are there.
	pipeline func() *pipeline
}

var _ = core.NewComponent("local requests", func(c *core.Core) *local {
	return &local{c, sync.OnceValue(func() *pipeline { return newPipeline(c, c.Log(), true) })}
})

// Serve is described by exchange.Local.
func (l *local) Serve(w http.ResponseWriter, r *http.Request) (from exchange.From, whole bool) {
	p := l.pipeline()
	x := p.begin(w, r, time.Now())
	defer p.end(x)
	x.Tables = p.core.Tables()
	a := p.decide(x)
	p.change(x, a)
	_, from = a.Original()
	return from, p.send(x, a)
}

var _ exchange.Local = (*local)(nil)
