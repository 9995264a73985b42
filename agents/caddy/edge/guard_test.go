package edge

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// A guard that exists in this file only; true compiles.
func init() {
	core.PartOf("test: guard", "test: guard", func(_ *core.Core, _ string, m *wrapperspb.BoolValue) (*bool, error) {
		if !m.GetValue() {
			return nil, errors.New("does not compile")
		}
		return &m.Value, nil
	})
	core.ConfigureKind("test: guard", core.KindOptions{Guards: true})
}

// What should keep visitors out and does not compile closes its site; everything else goes on.
func TestASiteWhoseGuardFails(t *testing.T) {
	guard := func(good bool) *configv1.Entry { return edgetest.Entry("test: guard", "a", wrapperspb.Bool(good)) }
	h := newHandler(t, siteA(), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")))
	expect := func(when, host, target string, status int, code string) {
		t.Helper()
		if w, _ := h.send(request("GET", host, target)); w.Code != status || w.Header().Get("X-Svc-Error") != code {
			t.Errorf("%s, %s%s: %d %v", when, host, target, w.Code, w.Header())
		}
	}
	expect("no guard", "a.com", "/", 502, "no-origin")
	edgetest.Change(t, h.core, []*configv1.Entry{guard(false)})
	expect("it fails", "a.com", "/", 503, "policy-unavailable")
	expect("it fails", "192.0.2.9", "/.svc/health", 200, "")
	expect("it fails", "b.com", "/", 502, "no-origin")
	h.change(t, guard(true))
	expect("it is there", "a.com", "/", 502, "no-origin")
	edgetest.Change(t, h.core, []*configv1.Entry{guard(false)})
	expect("its former version is", "a.com", "/", 502, "no-origin")
}
