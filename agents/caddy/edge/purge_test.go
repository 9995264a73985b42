package edge

import (
	"bytes"
	"testing"

	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// PURGE comes after bans and before maintenance, and is no request of a visitor.
func TestPurgeRequestsHaveTheirPlaceAndAreNotCounted(t *testing.T) {
	purge := edgetest.Entry("site-purge-method", "a", &configv1.SitePurgeMethod{KeyDigest: bytes.Repeat([]byte{1}, 32)})
	h := newHandler(t, site(), maintained(), purge, edgetest.Entry("site", "b", edgetest.Site(0, "b.com")))
	want := func(host, code string) {
		t.Helper()
		if w, _ := h.send(request("PURGE", host, "/")); w.Header().Get("X-Svc-Error") != code {
			t.Errorf("%s: %d %v", host, w.Code, w.Header())
		}
	}
	want("a.com", "purge-unavailable")
	if minutes := count.Of(h.core).Drain(0).GetMinutes(); len(minutes) != 0 && minutes[0].GetRequests() != 0 {
		t.Errorf("%v", minutes)
	}
	want("b.com", "no-origin")
	h.ban(t, "", "192.0.2.0/24")
	want("a.com", "ip-banned")
}
