package origin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// lastOf is the highest address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestSpecialPurposeNetworksAreRefusedFromFirstToLastAddress(t *testing.T) {
	var none *AddressPolicy
	for _, n := range deniedNetworks {
		first, last := n.Addr(), lastOf(n)
		for _, a := range []netip.Addr{first, last} {
			if none.Allows(a) {
				t.Errorf("%s of %s is allowed", a, n)
			}
			if !a.Is4() {
				continue
			}
			b := a.As4()
			if mapped := netip.AddrFrom16(a.As16()); none.Allows(mapped) {
				t.Errorf("%s is allowed", mapped)
			}
			if translated := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], b[1], b[2], b[3]}); none.Allows(translated) {
				t.Errorf("%s is allowed", translated)
			}
		}
		for _, outside := range []netip.Addr{first.Prev(), last.Next()} {
			if outside.IsValid() && none.Allows(outside) == contains(deniedNetworks, outside) {
				t.Errorf("%s next to %s is judged wrongly", outside, n)
			}
		}
	}
	for _, a := range []string{"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "223.255.255.255",
		"2606:4700::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "100:0:0:1::", "2001:db7:ffff::", "2001:db9::", "2001:1::1", "2003::1"} {
		if !none.Allows(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("2606:4700::1%eth0"), netip.MustParseAddr("fe80::1%eth0")} {
		if none.Allows(a) {
			t.Errorf("%s is allowed", a)
		}
	}
}

func TestAllowedNetworksAreExempt(t *testing.T) {
	policy, err := CompilePolicy(&configv1.OriginPolicy{AllowedCidrs: []string{"10.1.0.0/16", "fd00:1::/32", "::ffff:192.168.1.0/120", "64:ff9b::c0a8:200/120"}})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.1": false, "::ffff:10.1.2.3": true, "64:ff9b::10.1.2.3": true, "64:ff9b::10.2.2.3": false,
		"fd00:1::1": true, "fd00:2::1": false, "192.168.1.9": true, "192.168.2.9": false, "64:ff9b::192.168.2.9": true,
	} {
		if policy.Allows(netip.MustParseAddr(address)) != want {
			t.Errorf("%s: want %v", address, want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0", "10.0.0.0/33", "::ffff:0:0/90", "x/8"} {
		if _, err := CompilePolicy(&configv1.OriginPolicy{AllowedCidrs: []string{bad}}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestResolverReturnsOnlyAllowedAnswers(t *testing.T) {
	answers := map[string]string{
		"mixed.test":  "10.0.0.1 1.1.1.1 2606:4700::1 ::ffff:9.9.9.9 fe80::1 64:ff9b::7f00:1 64:ff9b::808:808",
		"inside.test": "10.0.0.1 fd00::1 ::ffff:127.0.0.1", "empty.test": "",
	}
	s := newResolver()
	var asked atomic.Int64
	s.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		asked.Add(1)
		list, ok := answers[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		var addrs []netip.Addr
		for a := range strings.FieldsSeq(list) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		return addrs, nil
	}
	local, _ := CompilePolicy(&configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.1/32"}})
	ten, _ := CompilePolicy(&configv1.OriginPolicy{AllowedCidrs: []string{"10.0.0.0/8"}})
	for _, c := range []struct {
		host   string
		policy *AddressPolicy
		want   string
		class  failure
	}{
		{"mixed.test", nil, "1.1.1.1 9.9.9.9 2606:4700::1 64:ff9b::808:808", ""},
		{"mixed.test", ten, "1.1.1.1 10.0.0.1 9.9.9.9 2606:4700::1 64:ff9b::808:808", ""},
		{"inside.test", nil, "", failForbidden},
		{"inside.test", ten, "10.0.0.1", ""},
		{"inside.test", local, "127.0.0.1", ""},
		{"empty.test", nil, "", failDNS},
		{"missing.test", nil, "", failDNS},
		{"localhost", nil, "", failForbidden}, {"LOCALHOST.", nil, "", failForbidden}, {"a.localhost", nil, "", failForbidden},
		{"localhost", local, "127.0.0.1", ""}, {"a.localhost.", local, "127.0.0.1", ""},
		{"127.0.0.1", nil, "", failForbidden}, {"127.0.0.1", local, "127.0.0.1", ""}, {"::ffff:127.0.0.1", nil, "", failForbidden},
		{"127.1", local, "", failDNS}, {"0x7f.1", local, "", failDNS}, {"2130706433", local, "", failDNS}, {"a.0x7f000001", local, "", failDNS},
		{"1.1.1.1", nil, "1.1.1.1", ""}, {"fe80::1%lo", nil, "", failForbidden},
	} {
		addrs, err := s.resolve(t.Context(), c.host, c.policy)
		if c.class != "" {
			if err == nil || classOf(err) != c.class {
				t.Errorf("%s: got %v %v, want %s", c.host, addrs, err, c.class)
			}
			continue
		}
		six := slices.IndexFunc(addrs, netip.Addr.Is6)
		if six >= 0 && slices.ContainsFunc(addrs[six:], netip.Addr.Is4) {
			t.Errorf("%s: IPv4 must come first: %v", c.host, addrs)
		}
		var got []string
		for _, a := range addrs {
			got = append(got, a.String())
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v %v, want %v", c.host, got, err, want)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("4 names took %d lookups", n)
	}
}

func TestResolverRemembersBoundedly(t *testing.T) {
	s := newResolver()
	s.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
	}
	for _, host := range numbered("h%d.test", maxResolved+500) {
		if _, err := s.resolve(t.Context(), host, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.answers); n > maxResolved {
		t.Fatalf("%d answers are remembered", n)
	}
}

func TestOriginsAtForbiddenAddressesAreNotReached(t *testing.T) {
	bothClients(t, func(t *testing.T, second bool) {
		var asked, connections atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		s.EnableHTTP2 = true
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		o := originAt("a", addressOf(s))
		o.Address, o.Https = "origin.test", true
		e := newEdge(t, settings(func(p *configv1.OriginPool) { p.TlsVerify = false }), o)
		if second {
			e.shared = NewShared(e.transports)
			t.Cleanup(e.shared.CloseIdle)
		}
		e.transports.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		var policy atomic.Pointer[AddressPolicy]
		policy.Store(loopbackPolicy(t))
		e.transports.policy = policy.Load
		e.wantGet("/", 200, "")
		e.wantGet("/", 200, "")
		// A connection that is already open must not be used either, nor the answer of DNS that is known.
		policy.Store(nil)
		e.wantGet("/", 502, "edge: no-origin")
		if asked.Load() != 2 || connections.Load() != 1 {
			t.Fatalf("the origin was asked %d times over %d connections", asked.Load(), connections.Load())
		}
		// Another policy that allows the address as well keeps connections.
		policy.Store(loopbackPolicy(t))
		e.wantGet("/", 200, "")
		policy.Store(loopbackPolicy(t))
		e.wantGet("/", 200, "")
		if connections.Load() != 2 {
			t.Errorf("%d connections", connections.Load())
		}
	})
}
