package edge

import (
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// pipeline is the order, made ready for one core.
type pipeline struct {
	core     *core.Core
	log      *zap.Logger
	local    bool
	stages   []stage
	response []responseStage
	finish   []exchange.FinishStage
	metrics  *metrics
}

type stage struct {
	name    string
	run     exchange.Stage
	onPanic failure
}

type responseStage struct {
	name string
	from exchange.From
	run  exchange.ResponseStage
}

// newPipeline makes the order ready. local leaves out what does not concern the node's own requests.
func newPipeline(c *core.Core, log *zap.Logger, local bool) *pipeline {
	p := &pipeline{core: c, log: log, local: local}
	for _, r := range order {
		if r.local || !local {
			p.stages = append(p.stages, stage{r.name, r.stage(c), r.onPanic})
		}
	}
	for _, r := range responseOrder {
		p.response = append(p.response, responseStage{r.name, r.from, r.stage(c)})
	}
	for _, f := range finishOrder {
		p.finish = append(p.finish, f(c))
	}
	p.metrics = metricsOf(c, local, p.stages)
	return p
}

var exchanges = sync.Pool{New: func() any { return new(exchange.Exchange) }}

// begin starts an exchange.
func (p *pipeline) begin(w http.ResponseWriter, r *http.Request, now time.Time) *exchange.Exchange {
	x := exchanges.Get().(*exchange.Exchange)
	x.Local = p.local
	x.BeginAt(w, r, now)
	endAfter(x, r)
	return x
}

// serve takes an exchange through the order and sends its answer. It reports false when the client's connection, or
// stream, must end: the answer is to be none, or did not leave whole.
func (p *pipeline) serve(x *exchange.Exchange) (whole bool) {
	defer p.end(x)
	x.Tables = p.core.Tables()
	a := p.decide(x)
	p.change(x, a)
	return p.send(x, a)
}

// decide asks the stages in their order. A panic is contained to its stage.
func (p *pipeline) decide(x *exchange.Exchange) (a *exchange.Answer) {
	at := 0
	defer func() {
		if v := recover(); v != nil {
			a = p.contain(x, &p.stages[at], v)
			p.metrics.answered(at, a)
		}
	}()
	if p.metrics.sample() {
		return p.decideTimed(x, &at)
	}
	for at = range p.stages {
		if a = p.stages[at].run(x); a != nil {
			p.metrics.answered(at, a)
			return a
		}
	}
	panic("no stage answered")
}

func (p *pipeline) decideTimed(x *exchange.Exchange, at *int) *exchange.Answer {
	begun := time.Now()
	for *at = range p.stages {
		a := p.stages[*at].run(x)
		now := time.Now()
		p.metrics.took(*at, now.Sub(begun))
		if begun = now; a != nil {
			p.metrics.answered(*at, a)
			return a
		}
	}
	panic("no stage answered")
}

// change has every response stage that an answer concerns change it. A panic of one leaves the others their turn.
func (p *pipeline) change(x *exchange.Exchange, a *exchange.Answer) {
	if a.Drop {
		return
	}
	for i := range p.response {
		if s := &p.response[i]; s.from&a.From != 0 {
			p.changeContained(s, x, a)
		}
	}
}

func (p *pipeline) changeContained(s *responseStage, x *exchange.Exchange, a *exchange.Answer) {
	defer func() {
		if v := recover(); v != nil {
			p.tell(x, s.name, v)
		}
	}()
	s.run(x, a)
}

func (p *pipeline) send(x *exchange.Exchange, a *exchange.Answer) (whole bool) {
	defer func() {
		if v := recover(); v != nil {
			// Whoever made the answer may have changed it beyond use; what has begun to leave can only end.
			x.Spoiled = true
			p.tell(x, "send", v)
			whole = false
		}
	}()
	return x.Send(a)
}

// contain answers for a stage that panicked.
func (p *pipeline) contain(x *exchange.Exchange, s *stage, v any) *exchange.Answer {
	x.Spoiled = true
	if v == http.ErrAbortHandler {
		return x.Drop()
	}
	p.tell(x, s.name, v)
	f := s.onPanic
	if f.status == 0 {
		f = failure{http.StatusInternalServerError, pages.InternalError}
	}
	return pages.Respond(x, f.status, f.code)
}

func (p *pipeline) tell(x *exchange.Exchange, stage string, v any) {
	site := ""
	if x.Plan != nil {
		site = x.Plan.SiteID
	}
	p.log.Error("a panic was contained", zap.String("stage", stage), zap.String("site", site), zap.Any("panic", v), zap.Stack("stack"))
}

// end tells everybody who wants to know that an exchange is over, once, and gives it back.
func (p *pipeline) end(x *exchange.Exchange) {
	for _, f := range p.finish {
		p.finishContained(f, x)
	}
	spoiled := x.Spoiled
	x.Reset()
	if !spoiled {
		exchanges.Put(x)
	}
}

func (p *pipeline) finishContained(f exchange.FinishStage, x *exchange.Exchange) {
	defer func() {
		if v := recover(); v != nil {
			p.tell(x, "finish", v)
		}
	}()
	f(x)
}
