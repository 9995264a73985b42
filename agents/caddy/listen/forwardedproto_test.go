package listen

import (
	"net/http"
	"net/netip"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Trusted proxies say how the client came. What a client forged stands left of what they say, and is not read.
func TestSchemeOfTheClient(t *testing.T) {
	c := emptyCore(t)
	trusted := []string{"10.0.0.0/8"}
	mode := configv1.ClientIpMode_CLIENT_IP_MODE_HEADER
	list := clientIPOf(t, c, &configv1.ClientIp{Mode: mode, Header: "x-forwarded-for", TrustedCidrs: trusted})
	single := clientIPOf(t, c, &configv1.ClientIp{Mode: mode, Header: "cf-connecting-ip", TrustedCidrs: trusted})
	rfc7239 := clientIPOf(t, c, &configv1.ClientIp{Mode: mode, Header: "forwarded", TrustedCidrs: trusted})
	ignoring := clientIPOf(t, c, &configv1.ClientIp{Mode: mode, Header: "x-forwarded-for", TrustedCidrs: trusted, IgnoreForwardedProto: true})
	direct := clientIPOf(t, c, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	proxied := clientIPOf(t, c, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	for _, c := range []struct {
		name     string
		settings *ClientIPSetting
		peer     string
		from     []string
		proto    []string
		want     string
	}{
		{"a trusted proxy", list, "10.0.0.1", []string{"1.1.1.1"}, []string{"https"}, "https"},
		{"a trusted proxy that was reached over HTTP", list, "10.0.0.1", []string{"1.1.1.1"}, []string{"http"}, "http"},
		{"case and blanks", list, "10.0.0.1", nil, []string{" HTTPS\t"}, "https"},
		{"WebSocket", list, "10.0.0.1", nil, []string{"wss"}, "https"},
		{"another scheme", list, "10.0.0.1", nil, []string{"gopher"}, ""},
		{"nothing", list, "10.0.0.1", nil, nil, ""},
		{"empty elements", list, "10.0.0.1", nil, []string{",", "https,, "}, "https"},
		{"a stranger", list, "198.51.100.1", []string{"1.1.1.1"}, []string{"https"}, ""},
		{"direct", direct, "10.0.0.1", []string{"1.1.1.1"}, []string{"https"}, ""},
		{"PROXY protocol", proxied, "10.0.0.1", []string{"1.1.1.1"}, []string{"https"}, ""},
		{"told not to", ignoring, "10.0.0.1", []string{"1.1.1.1"}, []string{"https"}, ""},
		{"what the client forged", list, "10.0.0.1", []string{"9.9.9.9, 1.1.1.1"}, []string{"https, http"}, "http"},
		{"two proxies", list, "10.0.0.1", []string{"1.1.1.1, 10.0.0.2"}, []string{"https, http"}, "https"},
		{"two proxies in two lines", list, "10.0.0.1", []string{"1.1.1.1", "10.0.0.2"}, []string{"https", "http"}, "https"},
		{"two proxies and a forged element", list, "10.0.0.1", []string{"1.1.1.1, 10.0.0.2"}, []string{"https, http, https"}, "http"},
		{"two proxies, the first alone says it", list, "10.0.0.1", []string{"1.1.1.1, 10.0.0.2"}, []string{"https"}, "https"},
		{"an element that is no scheme", list, "10.0.0.1", []string{"1.1.1.1, 10.0.0.2"}, []string{"https, x, http"}, ""},
		{"a header with one address", single, "10.0.0.1", nil, []string{"https"}, "https"},
		{"Forwarded", rfc7239, "10.0.0.1", []string{"for=1.1.1.1;proto=https"}, nil, "https"},
		{"Forwarded in other letters and quoted", rfc7239, "10.0.0.1", []string{`Proto="HTTPS"; For="1.1.1.1:80"`}, nil, "https"},
		{"Forwarded of two proxies", rfc7239, "10.0.0.1", []string{"for=1.1.1.1;proto=https, for=10.0.0.2;proto=http"}, nil, "https"},
		{"Forwarded with a forged element", rfc7239, "10.0.0.1", []string{"for=9.9.9.9;proto=https, for=1.1.1.1;proto=http"}, nil, "http"},
		{"Forwarded of an unknown client", rfc7239, "10.0.0.1", []string{"for=unknown;proto=https"}, nil, "https"},
		{"Forwarded without a scheme", rfc7239, "10.0.0.1", []string{"for=1.1.1.1"}, []string{"https"}, "https"},
		{"Forwarded of a stranger", rfc7239, "198.51.100.1", []string{"for=1.1.1.1;proto=https"}, nil, ""},
		{"Forwarded where another header has the address", list, "10.0.0.1", []string{"for=1.1.1.1;proto=https"}, nil, ""},
	} {
		h := http.Header{}
		name := c.settings.header
		if name == "" {
			name = "X-Forwarded-For"
		}
		h[name] = c.from
		if c.proto != nil {
			h["X-Forwarded-Proto"] = c.proto
		}
		if got := c.settings.SchemeOf(netip.MustParseAddr(c.peer), h); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}
