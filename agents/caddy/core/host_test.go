package core

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNormalizeHost(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a"
	for _, c := range []struct {
		raw, host string
		kind      HostKind
	}{
		{"a.com", "a.com", HostName},
		{"A.Com:8080", "a.com", HostName},
		{"a.com.", "a.com", HostName},
		{"a.com.:443", "a.com", HostName},
		{"a.com:", "a.com", HostName},
		{"localhost", "localhost", HostName},
		{"_dmarc.a-b.com", "_dmarc.a-b.com", HostName},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", HostName},
		{long, long, HostName},
		{long + "b", "", HostInvalid},
		{"", "", HostInvalid},
		{".", "", HostInvalid},
		{":80", "", HostInvalid},
		{".a.com", "", HostInvalid},
		{"a..com", "", HostInvalid},
		{"a.com..", "", HostInvalid},
		{"a.com:80x", "", HostInvalid},
		{"a.com:123456", "", HostInvalid},
		{"a.com:80:80", "", HostInvalid},
		{"a b.com", "", HostInvalid},
		{"bücher.example", "", HostInvalid},
		{"a.com/x", "", HostInvalid},
		{"user@a.com", "", HostInvalid},
		{"192.0.2.1", "192.0.2.1", HostAddress},
		{"192.0.2.1:80", "192.0.2.1", HostAddress},
		{"192.0.2.1.", "192.0.2.1", HostAddress},
		{"[2001:DB8::1]:443", "2001:db8::1", HostAddress},
		{"[2001:db8:0:0::1]", "2001:db8::1", HostAddress},
		{"[::ffff:192.0.2.1]", "192.0.2.1", HostAddress},
		{"[fe80::1%25eth0]", "fe80::1", HostAddress},
		{"[192.0.2.1]", "", HostInvalid},
		{"[::1", "", HostInvalid},
		{"[::1]x", "", HostInvalid},
		{"::1", "", HostInvalid},
		{"127.1", "127.1", HostAddress},
		{"2130706433", "2130706433", HostAddress},
		{"0x7f000001", "0x7f000001", HostAddress},
		{"a.0x", "a.0x", HostAddress},
		{"a.0xg", "a.0xg", HostName},
	} {
		if host, kind := NormalizeHost(c.raw); host != c.host || kind != c.kind {
			t.Errorf("%q: got %q %d, want %q %d", c.raw, host, kind, c.host, c.kind)
		}
	}
}

// What comes out has the form in which names are stored, and coming out once more changes nothing.
func FuzzNormalizeHost(f *testing.F) {
	for _, seed := range []string{"a.com", "A.com:80", "[::1]:80", "[fe80::1%25x]", "1.2.3.4", "a..b", ".", "0x7f.1", "a.com.:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, kind := NormalizeHost(raw)
		switch kind {
		case HostInvalid:
			if host != "" {
				t.Fatalf("%q: an invalid host is %q", raw, host)
			}
			return
		case HostAddress:
			if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
				host = "[" + host + "]"
			}
		case HostName:
			if strings.ToLower(host) != host || strings.ContainsAny(host, ":[]/@ ") || strings.HasSuffix(host, ".") || len(host) > maxHostBytes {
				t.Fatalf("%q: %q", raw, host)
			}
		}
		again, kindAgain := NormalizeHost(host)
		if kindAgain != kind || strings.Trim(host, "[]") != again {
			t.Fatalf("%q: first %q %d, then %q %d", raw, host, kind, again, kindAgain)
		}
	})
}
