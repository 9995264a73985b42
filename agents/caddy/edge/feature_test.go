package edge

import (
	"slices"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"edge.svc/caddy/core"
	"edge.svc/caddy/edge/testdata/greet"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// A feature is its package, its import and its line in the order: this is all there is to it, for a kind of entry, a
// setting, a capability, a fact, a stage and a response stage.
func TestAFeatureIsItsPackageItsImportAndItsLineInTheOrder(t *testing.T) {
	defer func(stages []row, responses []responseRow) { order, responseOrder = stages, responses }(order, responseOrder)
	at := slices.IndexFunc(order, func(r row) bool { return r.name == "lists" })
	order = slices.Insert(slices.Clone(order), at, row{"greeting", notForLocal, greet.Stage, policyFails})
	responseOrder = append(slices.Clone(responseOrder), responseRow{"greeting", exchange.FromAll, greet.Response})

	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	if w, _ := h.send(request("GET", "a.com", "/greeting")); w.Header().Get("X-Svc-Error") != "no-origin" || w.Header().Get("X-Greeting") != "" {
		t.Errorf("without an entry: %v", w.Header())
	}
	entry := edgetest.Entry("greeting", "", wrapperspb.String("hello"))
	entry.Features = []string{"greeting-v1"}
	h.change(t, entry)
	if w, _ := h.send(request("GET", "a.com", "/greeting")); w.Code != 200 || w.Body.String() != "hello" || w.Header().Get("X-Greeting") != "hello" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	if w, _ := h.send(request("GET", "a.com", "/")); w.Header().Get("X-Svc-Error") != "no-origin" || w.Header().Get("X-Greeting") != "hello" {
		t.Errorf("%v", w.Header())
	}
	if !slices.Contains(core.Capabilities(), "greeting-v1") {
		t.Errorf("%v", core.Capabilities())
	}
	// An entry that does not compile keeps the one before.
	if failed := edgetest.Change(t, h.core, []*configv1.Entry{edgetest.Entry("greeting", "", wrapperspb.String(""))}); len(failed) != 1 {
		t.Errorf("%v", failed)
	}
	if w, _ := h.send(request("GET", "a.com", "/greeting")); w.Body.String() != "hello" {
		t.Errorf("%q", w.Body)
	}
	// The node's own requests know nothing of it.
	local := newPipeline(h.core, zap.NewNop(), true)
	if slices.Contains(namesOf(local), "greeting") {
		t.Error("it concerns visitors only")
	}
}
