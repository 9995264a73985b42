package svccore

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gaissmai/bart"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// ClientIP says how the address of a request's client is found. It is immutable.
type ClientIP struct {
	Mode configv1.ClientIpMode
	// DropForwardedFor replaces X-Forwarded-For instead of adding to it, in direct mode.
	DropForwardedFor bool

	// Canonical header name, "" outside header mode.
	header  string
	trusted *bart.Lite
}

var directClientIP = &ClientIP{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT, trusted: new(bart.Lite)}

func compileClientIP(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	var message configv1.ClientIp
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not a client address setting: %w", err)
	}
	next := &ClientIP{Mode: message.GetMode(), DropForwardedFor: message.GetDropForwardedFor(), trusted: new(bart.Lite)}
	switch message.GetMode() {
	case configv1.ClientIpMode_CLIENT_IP_MODE_UNSPECIFIED:
		next.Mode = configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT
	case configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT, configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL:
	case configv1.ClientIpMode_CLIENT_IP_MODE_HEADER:
		if !httpguts.ValidHeaderFieldName(message.GetHeader()) {
			return nil, errors.New("header mode needs the name of a header")
		}
		next.header = http.CanonicalHeaderKey(message.GetHeader())
		for _, cidr := range message.GetTrustedCidrs() {
			p, err := parsePrefix(cidr)
			if err != nil {
				return nil, err
			}
			next.trusted.Insert(p)
		}
	default:
		return nil, fmt.Errorf("client address mode %d needs a capability this node lacks", message.GetMode())
	}
	return func(e *edit) { e.tables.ClientIP = next }, nil
}

func removeClientIP(e *edit, _ string) { e.tables.ClientIP = directClientIP }

// Trusts reports whether addr is a proxy whose header is believed. Such addresses are never banned.
func (c *ClientIP) Trusts(addr netip.Addr) bool {
	return c.header != "" && c.trusted.Lookup(addr)
}

// Resolve returns the client's address. peer is the TCP peer, proxied the address from the PROXY header of the
// connection, invalid when it had none. In header mode the named header of a trusted peer is read from right to left
// past trusted addresses: the first other one is the client, because everything to its left was sent by it. Where
// nothing readable remains, the client is the last address that was reached.
func (c *ClientIP) Resolve(peer, proxied netip.Addr, h http.Header) netip.Addr {
	switch {
	case c.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && proxied.IsValid():
		return proxied
	case c.header == "" || !c.trusted.Lookup(peer):
		return peer
	}
	client := peer
	values := h[c.header]
	for i := len(values) - 1; i >= 0; i-- {
		for rest, more := values[i], true; more; {
			var item string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, item = rest[:comma], rest[comma+1:]
			} else {
				item, more = rest, false
			}
			addr, ok := parseForwarded(item)
			if !ok {
				return client
			}
			if client = addr; !c.trusted.Lookup(addr) {
				return client
			}
		}
	}
	return client
}

// parseForwarded reads an address as proxies write it: plain, with a port, or in brackets.
func parseForwarded(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if s == "" {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isPortSuffix(s[end+1:]) {
			return netip.Addr{}, false
		}
		s = s[1:end]
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 && colon == strings.LastIndexByte(s, ':') {
		if !isPortSuffix(s[colon:]) {
			return netip.Addr{}, false
		}
		s = s[:colon]
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.WithZone("").Unmap(), true
}

// parsePrefix reads a CIDR or an address; IPv4-mapped ones come out as IPv4, host bits cleared.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		addr, addrErr := netip.ParseAddr(s)
		if addrErr != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address or CIDR", s)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q is wider than the IPv4-mapped range", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}
