package count

import (
	"context"
	"slices"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/pages"
)

// maxVitals is how many sites are answered at once.
const maxVitals = 100

// errorPrefix begins the names under which answers 5xx of the edge are counted.
const errorPrefix = "error."

// protective begins names of requests that were kept away: they say nothing about how a site fares.
var protective = []string{"blocked.", "challenge.shown."}

// deliberate are answers 5xx that somebody wanted, or that protection gave.
var deliberate = []string{pages.SiteDisabled, pages.Maintenance, pages.ChallengeUnavailable}

func init() {
	core.RegisterCapability("vitals-v1")
	core.RegisterCapability("statistics-v1")
	core.RegisterCall(edgev1connect.EdgeServiceGetVitalsProcedure, getVitals)
}

// edgeErrors has the counts of answers 5xx that the edge makes, by their code.
var edgeErrors = func() map[string]exchange.Count {
	counts := map[string]exchange.Count{}
	for _, code := range pages.Codes() {
		counts[code] = exchange.NewCount(errorPrefix + code)
	}
	return counts
}()

// edgeError is the count of an answer 5xx of the edge.
func edgeError(code string) exchange.Count {
	if count, ok := edgeErrors[code]; ok {
		return count
	}
	return edgeErrors[pages.InternalError]
}

// noteError counts an answer 5xx by who made it.
func (c *counter) noteError(x *exchange.Exchange, from exchange.From, code string) {
	if why := causeOf(x, from, code); why != causeNone {
		c.cause.Store(uint32(why))
		c.tally(firstCause + fixed(why-1))
	}
	if from == exchange.FromEdge {
		x.Mark(edgeError(code))
	} else {
		c.originErrors.Add(1)
	}
}

// fared is how requests fared since the start of the process: what settles and what is drained stays in it. It belongs
// to the one who flushes.
type fared struct {
	requests, spared, originErrors uint64
	// What was told of requests: one that is spared after it was counted takes nothing back.
	told uint64
	// By code, and their sum.
	edgeErrors map[string]uint64
	edgeFailed uint64
}

// add takes over a figure that is settled.
func (v *fared) add(f field, n uint64) {
	switch {
	case f == fieldRequests:
		v.requests += n
	case f.isName() && !isFixed(f):
		v.addNamed(nameOf(f), n)
	}
}

func (v *fared) addNamed(name string, n uint64) {
	code, isError := strings.CutPrefix(name, errorPrefix)
	switch {
	case isError && !slices.Contains(deliberate, code):
		if v.edgeErrors == nil {
			v.edgeErrors = map[string]uint64{}
		}
		v.edgeErrors[code] += n
		v.edgeFailed += n
	case isError || slices.ContainsFunc(protective, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
		v.spared += n
	}
}

// worth is how many requests were neither refused nor spared otherwise, and how many of them failed.
func (v *fared) worth() (requests, failed uint64) {
	return v.requests - min(v.spared, v.requests), v.originErrors + v.edgeFailed
}

func (v *fared) message(siteID string) *nodev1.Vitals {
	v.told = max(v.told, v.requests-min(v.spared, v.requests))
	vitals := &nodev1.Vitals{SiteId: siteID, Requests: v.told, OriginErrors: v.originErrors}
	for code, n := range v.edgeErrors {
		vitals.EdgeErrors = append(vitals.EdgeErrors, &nodev1.NamedCount{Name: code, Count: n})
	}
	return vitals
}

// Vitals answers how requests fared since the start of the process: all of them, and those of each plan whose site was
// asked for anything.
func (s *Stats) Vitals(plans []*exchange.Plan) []*nodev1.Vitals {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	vitals := []*nodev1.Vitals{s.fared.message("")}
	for _, plan := range plans {
		if c := counters.Of(plan); c != nil {
			vitals = append(vitals, c.fared.message(plan.SiteID))
		}
	}
	return vitals
}

func getVitals(_ context.Context, c *core.Core, r *edgev1.GetVitalsRequest) (*edgev1.GetVitalsResponse, error) {
	tables := c.Tables()
	var plans []*exchange.Plan
	for _, id := range r.GetSiteIds()[:min(len(r.GetSiteIds()), maxVitals)] {
		if plan := core.PlanOfSite(tables, id); plan != nil {
			plans = append(plans, plan)
		}
	}
	vitals := Of(c).Vitals(plans)
	return &edgev1.GetVitalsResponse{InstanceId: c.InstanceID, Config: c.Status().Position, Vitals: vitals}, nil
}
