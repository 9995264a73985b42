package listen

import (
	"net/http"
	"net/netip"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func emptyCore(t testing.TB) *core.Core {
	return core.New(core.Options{StateDir: t.TempDir()})
}

func clientIPOf(t *testing.T, c *core.Core, settings *configv1.ClientIp) *ClientIPSetting {
	t.Helper()
	edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("client-ip", "", settings)})
	if failed := c.Status().Failed; len(failed) != 0 {
		t.Fatal(failed)
	}
	return ClientIP.Of(c.Tables())
}

func TestClientAddress(t *testing.T) {
	c := emptyCore(t)
	direct := clientIPOf(t, c, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})
	proxied := clientIPOf(t, c, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL})
	header := clientIPOf(t, c, &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-forwarded-for",
		TrustedCidrs: []string{"10.0.0.0/8", "192.0.2.10/32", "2001:db8:1::/48"},
	})
	for _, c := range []struct {
		name     string
		settings *ClientIPSetting
		peer     string
		proxied  string
		values   []string
		want     string
	}{
		{"direct takes the peer", direct, "198.51.100.1", "", []string{"1.1.1.1"}, "198.51.100.1"},
		{"direct ignores a PROXY address", direct, "198.51.100.1", "1.1.1.1", nil, "198.51.100.1"},
		{"proxy takes the PROXY address", proxied, "198.51.100.1", "2.2.2.2", []string{"1.1.1.1"}, "2.2.2.2"},
		{"proxy without a header takes the peer", proxied, "198.51.100.1", "", nil, "198.51.100.1"},
		{"header of a stranger is not believed", header, "198.51.100.1", "", []string{"1.1.1.1"}, "198.51.100.1"},
		{"header of a trusted peer is", header, "10.0.0.1", "", []string{"1.1.1.1"}, "1.1.1.1"},
		{"what the client forged is left of its address", header, "10.0.0.1", "", []string{"1.1.1.1, 9.9.9.9"}, "9.9.9.9"},
		{"trusted hops are walked past", header, "10.0.0.1", "", []string{"1.1.1.1, 9.9.9.9, 192.0.2.10, 10.2.3.4"}, "9.9.9.9"},
		{"lines are one list", header, "10.0.0.1", "", []string{"1.1.1.1", "9.9.9.9,10.1.1.1", "10.2.2.2"}, "9.9.9.9"},
		{"all trusted: the first", header, "10.0.0.1", "", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"no header: the peer", header, "10.0.0.1", "", nil, "10.0.0.1"},
		{"empty header: the peer", header, "10.0.0.1", "", []string{""}, "10.0.0.1"},
		{"nonsense ends the walk", header, "10.0.0.1", "", []string{"1.1.1.1, nonsense, 10.2.2.2"}, "10.2.2.2"},
		{"unknown ends the walk", header, "10.0.0.1", "", []string{"unknown"}, "10.0.0.1"},
		{"empty elements are skipped", header, "10.0.0.1", "", []string{"1.1.1.1,,10.2.2.2", " ,", ""}, "1.1.1.1"},
		{"empty elements alone: the peer", header, "10.0.0.1", "", []string{",, ,"}, "10.0.0.1"},
		{"the case of Forwarded has no meaning elsewhere", header, "10.0.0.1", "", []string{"for=1.1.1.1"}, "10.0.0.1"},
		{"ports are dropped", header, "10.0.0.1", "", []string{"9.9.9.9:1234, 10.2.2.2:80"}, "9.9.9.9"},
		{"brackets are dropped", header, "10.0.0.1", "", []string{"[2001:db8:9::1]:1234"}, "2001:db8:9::1"},
		{"brackets without a port", header, "10.0.0.1", "", []string{"[2001:db8:9::1]"}, "2001:db8:9::1"},
		{"a mapped address is IPv4", header, "10.0.0.1", "", []string{"::ffff:9.9.9.9"}, "9.9.9.9"},
		{"a mapped trusted address is trusted", header, "10.0.0.1", "", []string{"9.9.9.9, ::ffff:10.0.0.9"}, "9.9.9.9"},
		{"a trusted IPv6 peer", header, "2001:db8:1::5", "", []string{"2001:db8:2::1"}, "2001:db8:2::1"},
		{"a zone is dropped", header, "10.0.0.1", "", []string{"fe80::1%eth0"}, "fe80::1"},
		{"an octet with a leading zero is nonsense", header, "10.0.0.1", "", []string{"1.1.1.01"}, "10.0.0.1"},
	} {
		h := http.Header{}
		for _, value := range c.values {
			h.Add("X-Forwarded-For", value)
		}
		var behind netip.Addr
		if c.proxied != "" {
			behind = netip.MustParseAddr(c.proxied)
		}
		if got := c.settings.Resolve(netip.MustParseAddr(c.peer), behind, h); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestClientAddressOfForwarded(t *testing.T) {
	c := emptyCore(t)
	forwarded := clientIPOf(t, c, &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "forwarded", TrustedCidrs: []string{"10.0.0.0/8"},
	})
	for value, want := range map[string]string{
		"for=203.0.113.7":                              "203.0.113.7",
		"For=203.0.113.7; proto=https;by=10.0.0.2":     "203.0.113.7",
		"proto=http;host=a.test ; FOR=203.0.113.7":     "203.0.113.7",
		`for="203.0.113.7:4711"`:                       "203.0.113.7",
		`for="[2001:db8::17]:4711"`:                    "2001:db8::17",
		`for="[2001:db8::17]"`:                         "2001:db8::17",
		"for=1.1.1.1, for=203.0.113.7, for=10.0.0.9":   "203.0.113.7",
		"for=203.0.113.7,, for=10.0.0.9,":              "203.0.113.7",
		"for=203.0.113.7, for=unknown":                 "10.0.0.1",
		"for=203.0.113.7, for=_hidden, for=10.0.0.9":   "10.0.0.9",
		"for=203.0.113.7, proto=https":                 "10.0.0.1",
		"203.0.113.7":                                  "10.0.0.1",
		`for="203.0.113.7`:                             "10.0.0.1",
		`for="1.1.1.1, for=203.0.113.7", for=10.0.0.9`: "10.0.0.9",
		"xfor=1.1.1.1;for=203.0.113.7":                 "203.0.113.7",
		"by=1.1.1.1;host=for=2.2.2.2":                  "10.0.0.1",
	} {
		if got := forwarded.Resolve(netip.MustParseAddr("10.0.0.1"), netip.Addr{}, http.Header{"Forwarded": {value}}); got != netip.MustParseAddr(want) {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

func TestClientAddressSettingsThatFail(t *testing.T) {
	c := emptyCore(t)
	for name, settings := range map[string]*configv1.ClientIp{
		"no header name": {Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER},
		"bad header":     {Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "a b"},
		"bad network":    {Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "a", TrustedCidrs: []string{"10.0.0.0/40"}},
		"unknown mode":   {Mode: 9},
	} {
		edgetest.Change(t, c, []*configv1.Entry{edgetest.Entry("client-ip", "", settings)})
		if len(c.Status().Failed) != 1 || ClientIP.Of(c.Tables()) != directClientIP {
			t.Errorf("%s was accepted", name)
		}
	}
}

// However a header looks, the result is the peer, or an address that stands in the header.
func FuzzClientAddress(f *testing.F) {
	for _, seed := range []string{"", "1.1.1.1", "1.1.1.1, 10.0.0.1", "[::1]:80,", "x,,y", "10.0.0.1,10.0.0.2"} {
		f.Add(seed, seed)
	}
	c := emptyCore(f)
	edgetest.Change(f, c, []*configv1.Entry{edgetest.Entry("client-ip", "", &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-client", TrustedCidrs: []string{"10.0.0.0/8"},
	})})
	settings := ClientIP.Of(c.Tables())
	peer := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, first, second string) {
		got := settings.Resolve(peer, netip.Addr{}, http.Header{"X-Client": {first, second}})
		if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%v", got)
		}
		if stranger := netip.MustParseAddr("192.0.2.1"); settings.Resolve(stranger, netip.Addr{}, http.Header{"X-Client": {first}}) != stranger {
			t.Fatal("a stranger was believed")
		}
	})
}
