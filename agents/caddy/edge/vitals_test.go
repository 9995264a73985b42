package edge

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// vitals asks as the agent does, by site.
func (h *edge) vitals(t *testing.T, siteIDs ...string) map[string]*nodev1.Vitals {
	t.Helper()
	calls := core.Calls()
	call := calls[slices.IndexFunc(calls, func(c core.Call) bool { return c.Procedure == edgev1connect.EdgeServiceGetVitalsProcedure })]
	server := httptest.NewServer(call.Handler(h.core))
	defer server.Close()
	client := edgev1connect.NewEdgeServiceClient(server.Client(), server.URL)
	answer, err := client.GetVitals(t.Context(), connect.NewRequest(&edgev1.GetVitalsRequest{SiteIds: siteIDs}))
	if err != nil {
		t.Fatal(err)
	}
	if m := answer.Msg; m.GetInstanceId() != h.core.InstanceID || m.GetConfig().GetRevision() != h.core.Status().Position.GetRevision() {
		t.Errorf("%v", m)
	}
	bySite := map[string]*nodev1.Vitals{}
	for _, vitals := range answer.Msg.GetVitals() {
		bySite[vitals.GetSiteId()] = vitals
	}
	return bySite
}

func expectVitals(t *testing.T, name string, vitals *nodev1.Vitals, requests, originErrors uint64, edgeErrors map[string]uint64) {
	t.Helper()
	codes := map[string]uint64{}
	for _, each := range vitals.GetEdgeErrors() {
		codes[each.GetName()] = each.GetCount()
	}
	if vitals.GetRequests() != requests || vitals.GetOriginErrors() != originErrors || !maps.Equal(codes, edgeErrors) {
		t.Errorf("%s: %d requests, %d errors of origins, %v; expected %d, %d, %v", name, vitals.GetRequests(), vitals.GetOriginErrors(), codes,
			requests, originErrors, edgeErrors)
	}
}

func TestVitalsSayWhoMadeTheErrors(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.WriteHeader(status)
	}))
	defer origin.Close()
	port := uint32(origin.Listener.Addr().(*net.TCPAddr).Port)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := uint32(closed.Addr().(*net.TCPAddr).Port)
	closed.Close()
	off := edgetest.Site(port, "off.com")
	off.Disabled = true
	h := newHandler(t,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "good", edgetest.Site(port, "good.com")), edgetest.Entry("site", "gone", edgetest.Site(gone, "gone.com")),
		edgetest.Entry("site", "idle", edgetest.Site(port, "idle.com")), edgetest.Entry("site", "off", off))
	ask := func(host, target string, want int) {
		t.Helper()
		if w, aborted := h.send(request("GET", host, target)); aborted || w.Code != want {
			t.Fatalf("%s%s: %d, aborted %v", host, target, w.Code, aborted)
		}
	}
	for status, times := range map[int]int{200: 5, 404: 2, 500: 3, 503: 1} {
		for range times {
			ask("good.com", "/?status="+strconv.Itoa(status), status)
		}
	}
	ask("gone.com", "/", 502)
	ask("off.com", "/", 503)
	ask("unknown.com", "/", 404)
	sites := []string{"good", "gone", "idle", "off", "missing"}
	unreachable := map[string]uint64{"origin-unreachable": 1}

	vitals := h.vitals(t, sites...)
	expectVitals(t, "its origin answers with errors", vitals["good"], 11, 4, nil)
	expectVitals(t, "its origin is gone", vitals["gone"], 1, 0, unreachable)
	expectVitals(t, "disabled on purpose", vitals["off"], 0, 0, nil)
	expectVitals(t, "the node", vitals[""], 13, 4, unreachable)
	if len(vitals) != 4 {
		t.Errorf("sites without requests, and unknown ones, have figures: %v", vitals)
	}

	// What is drained, refused or the same site's next version changes nothing.
	stats := count.Of(h.core)
	stats.Drain(stats.Drain(0).GetSequence())
	h.ban(t, "", "192.0.2.0/24")
	ask("good.com", "/?status=500", 403)
	h.change(t, edgetest.Entry("site", "good", edgetest.Site(port, "good.com", "better.com")))
	vitals = h.vitals(t, sites...)
	expectVitals(t, "its client is banned", vitals["good"], 11, 4, nil)
	expectVitals(t, "the node afterwards", vitals[""], 13, 4, unreachable)
}
