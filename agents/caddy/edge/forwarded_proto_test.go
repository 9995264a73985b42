package edge

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// Behind a trusted proxy that ends TLS, everything goes by how the client came: rules, origins and HSTS.
func TestTrustedProxiesSayHowTheClientCame(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto"), " ", r.Header.Get("X-Rule"))
	}))
	t.Cleanup(origin.Close)
	h := newHandler(t,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("client-ip", "", &configv1.ClientIp{
			Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-forwarded-for", TrustedCidrs: []string{"192.0.2.1/32"},
		}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")),
		siteRules(
			ruletest.When(ruletest.Eq("ssl", true), &configv1.HeaderAction{Name: "x-rule", Value: ruletest.Computed(ruletest.Field("http.request.scheme"))}),
			ruletest.When(ruletest.And(ruletest.Eq("ssl", false), ruletest.Eq("http.request.scheme", "http")), &configv1.HeaderAction{Name: "x-rule", Value: ruletest.Text("plain")})))
	for _, c := range []struct{ peer, proto, want string }{
		{"192.0.2.1", "https", "https https"}, {"192.0.2.1", "HTTPS", "https https"}, {"192.0.2.1", "http", "http plain"},
		{"192.0.2.1", "", "http plain"}, {"192.0.2.9", "https", "http plain"},
	} {
		r := request("GET", "a.com", "/")
		r.RemoteAddr = c.peer + ":1234"
		r.Header.Set("X-Forwarded-For", "203.0.113.5")
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		if w, _ := h.send(r); strings.TrimSpace(w.Body.String()) != c.want {
			t.Errorf("%+v: %d %q", c, w.Code, w.Body)
		}
	}
}
