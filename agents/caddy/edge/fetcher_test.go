package edge

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// Other features find what asks the origins of a site, and ask without the client that came.
func TestFeaturesFindTheOriginsOfASite(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		w.Header().Set("X-Loop", r.Header.Get("Cdn-Loop"))
	}))
	t.Cleanup(origin.Close)
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")))
	fetcher := core.Find[exchange.Fetcher](h.core)
	h.replace("fetch", func(x *exchange.Exchange) *exchange.Answer {
		response, err := fetcher.Fetch(t.Context(), x.Detach())
		if err != nil {
			failed := err.(*exchange.FetchError)
			a := x.Respond(failed.Status)
			a.Code = failed.Code
			return a
		}
		defer response.Body.Close()
		a := x.RespondFrom(exchange.FromCache, response.Status)
		a.Header["X-Fetched"] = []string{response.Header.Get("X-Path") + " " + response.Header.Get("X-Loop")}
		return a
	})
	if w, _ := h.send(request("GET", "a.com", "/x")); w.Code != 502 {
		t.Errorf("an address that the policy refuses: %d %v", w.Code, w.Header())
	}
	h.change(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}))
	if w, _ := h.send(request("GET", "a.com", "/x")); w.Code != 200 || w.Header().Get("X-Fetched") != "/x "+h.core.LoopID() {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	h.change(t, edgetest.Entry("site", "a", edgetest.Site(9, "a.com")))
	if w, _ := h.send(request("GET", "a.com", "/x")); w.Code != 502 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
