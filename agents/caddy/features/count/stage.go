package count

import (
	"net/http"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// counting is what is known of an exchange: for whom it counts.
type counting struct{ counter *counter }

var countedFor = exchange.NewFact[counting]()

// Stage counts a request for its site, with all that its connection carries for it. What came before a site was known
// counts for the node.
func Stage(c *core.Core) exchange.Stage {
	stats := Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		if exchange.IsUncounted(x) {
			stats.billNode(x)
			return nil
		}
		c := stats.counterOf(x.Plan)
		c.tallyVisitor(&x.In)
		stats.begin(x, c)
		return nil
	}
}

// Answered counts an answer by its status when it begins to leave: what takes hours is known from its first minute on.
func Answered(node *core.Core) exchange.ResponseStage {
	stats := Of(node)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if x.Local || exchange.IsUncounted(x) {
			return
		}
		c := stats.of(x)
		if status, from := a.Original(); status >= http.StatusInternalServerError {
			c.noteError(x, from, a.Code)
		}
		c.add(statusField(a.Status))
		c.marks(x)
		if state, known := exchange.CacheStatus.Known(x); known {
			c.cached.answered(state)
		}
		c.Touch()
	}
}

// Finish counts how long an exchange took, tunnels excepted, what the cache sent of it, who asked for what, and what was marked
// since its answer began.
func Finish(node *core.Core) exchange.FinishStage {
	stats := Of(node)
	return func(x *exchange.Exchange) {
		if x.Local || exchange.IsUncounted(x) {
			return
		}
		c := stats.of(x)
		c.marks(x)
		c.tallyOrigin(x)
		if !x.Tunnelled() {
			c.latency[exchange.LatencyBucket(time.Since(x.Begun))].Add(1)
		}
		if state, known := exchange.CacheStatus.Known(x); known && state.Hit {
			c.cached.hitBytes.Add(uint64(x.Sent()))
		}
		stats.lists.count(x, c)
		c.Touch()
	}
}

// begin counts the request of an exchange.
func (s *Stats) begin(x *exchange.Exchange, c *counter) {
	countedFor.Of(x).counter = c
	c.requests.Add(1)
	bill(x, &c.Account)
	c.Touch()
}

// billNode has what the connection carries for an exchange count for the node, and the exchange for nobody.
func (s *Stats) billNode(x *exchange.Exchange) { bill(x, &s.node.Account) }

func bill(x *exchange.Exchange, to *exchange.Account) {
	if x.Meter != nil {
		x.Meter.Bill(to)
	} else {
		x.BillTo(to)
	}
}

// of is for whom an exchange counts: the node where no site was known.
func (s *Stats) of(x *exchange.Exchange) *counter {
	at := countedFor.Of(x)
	if at.counter == nil {
		s.begin(x, s.node)
	}
	return at.counter
}

func (c *counter) marks(x *exchange.Exchange) {
	for _, count := range x.TakeMarks() {
		c.add(nameField(count))
	}
}
