package listen

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gaissmai/bart"
	"golang.org/x/net/http/httpguts"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/address"
)

// ClientIPSetting says how the address of a request's client is found. It is immutable.
type ClientIPSetting struct {
	Mode configv1.ClientIpMode
	// DropForwardedFor replaces X-Forwarded-For instead of adding to it, in direct mode.
	DropForwardedFor bool

	// Canonical header name, "" outside header mode.
	header  string
	trusted *bart.Lite
	// ignoreProto says that nobody is believed how the client came.
	ignoreProto bool
}

var directClientIP = &ClientIPSetting{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT, trusted: new(bart.Lite)}

// ClientIP is the setting of the cluster.
var ClientIP = exchange.NewSetting("client-ip", directClientIP)

func init() {
	core.SettingKind("client-ip", ClientIP, compileClientIP)
	core.ConfigureKind("client-ip", core.KindOptions{Features: []string{"client-ip-v1"}})
	core.RegisterExemption(core.Exemption{
		Exempts: func(t *exchange.Tables, addr netip.Addr) bool { return ClientIP.Of(t).Trusts(addr) },
		Changed: func(before, after *exchange.Tables) bool { return ClientIP.Of(before) != ClientIP.Of(after) },
	})
}

func compileClientIP(message *configv1.ClientIp) (*ClientIPSetting, error) {
	next := &ClientIPSetting{Mode: message.GetMode(), DropForwardedFor: message.GetDropForwardedFor(), trusted: new(bart.Lite)}
	switch message.GetMode() {
	case configv1.ClientIpMode_CLIENT_IP_MODE_UNSPECIFIED:
		next.Mode = configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT
	case configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT, configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL:
	case configv1.ClientIpMode_CLIENT_IP_MODE_HEADER:
		if !httpguts.ValidHeaderFieldName(message.GetHeader()) {
			return nil, errors.New("the header mode needs the name of a header")
		}
		next.header = http.CanonicalHeaderKey(message.GetHeader())
		next.ignoreProto = message.GetIgnoreForwardedProto()
		for _, cidr := range message.GetTrustedCidrs() {
			p, err := address.ParseNetwork(cidr)
			if err != nil {
				return nil, err
			}
			next.trusted.Insert(p)
		}
	default:
		return nil, fmt.Errorf("client address mode %d needs a capability that this node does not have", message.GetMode())
	}
	return next, nil
}

// hidesForwardedFor reports whether origins are told the peer alone, which direct mode can be asked for.
func (c *ClientIPSetting) hidesForwardedFor() bool {
	return c.DropForwardedFor && c.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT
}

// Trusts reports whether addr is a proxy whose header is believed. Such addresses are never banned.
func (c *ClientIPSetting) Trusts(addr netip.Addr) bool {
	return c.header != "" && c.trusted.Lookup(addr)
}

// Resolve returns the client's address. peer is the TCP peer, proxied the address from the PROXY header of the
// connection, invalid when it had none. In header mode the named header of a trusted peer is read from right to left
// past trusted addresses: the first other one is the client, because everything to its left was sent by it. Where
// nothing readable remains, the client is the last address that was reached.
func (c *ClientIPSetting) Resolve(peer, proxied netip.Addr, h http.Header) netip.Addr {
	if c.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && proxied.IsValid() {
		return proxied
	}
	if !c.Trusts(peer) {
		return peer
	}
	client := peer
	for item := range itemsBackwards(h[c.header]) {
		if c.header == forwarded {
			item = parameterOf(item, "for")
		}
		addr, ok := address.ParseForwarded(item)
		if !ok {
			return client
		}
		if client = addr; !c.trusted.Lookup(addr) {
			return client
		}
	}
	return client
}

const forwarded = "Forwarded"

// SchemeOf is how the client came, as the outermost trusted proxy says it in X-Forwarded-Proto, or in Forwarded where that
// is the header of the client's address; "" where none does. Each proxy appends to the lists, so that an element stands as
// far from the right as its proxy; a list that is shorter was begun by a trusted proxy.
func (c *ClientIPSetting) SchemeOf(peer netip.Addr, h http.Header) string {
	if c.ignoreProto || !c.Trusts(peer) {
		return ""
	}
	// Trusted proxies between the client and this node, with the peer.
	hops, scheme := 1, ""
	for item := range itemsBackwards(h[c.header]) {
		node := item
		if c.header == forwarded {
			scheme, node = schemeNamed(parameterOf(item, "proto")), parameterOf(item, "for")
		}
		if addr, ok := address.ParseForwarded(node); !ok || !c.trusted.Lookup(addr) {
			break
		}
		hops++
	}
	if scheme != "" {
		return scheme
	}
	for item := range itemsBackwards(h["X-Forwarded-Proto"]) {
		scheme = schemeNamed(item)
		if hops--; hops == 0 {
			break
		}
	}
	return scheme
}

// schemeNamed is the scheme of HTTP that a proxy names, in any case; "" for what is none.
func schemeNamed(name string) string {
	switch {
	case strings.EqualFold(name, "https"), strings.EqualFold(name, "wss"):
		return "https"
	case strings.EqualFold(name, "http"), strings.EqualFold(name, "ws"):
		return "http"
	}
	return ""
}

// itemsBackwards are the elements of a list in several lines, the last first. RFC 9110 §5.6.1.2: a recipient ignores empty
// ones.
func itemsBackwards(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(lines) - 1; i >= 0; i-- {
			for rest, more := lines[i], true; more; {
				comma := strings.LastIndexByte(rest, ',')
				item := strings.Trim(rest[comma+1:], " \t")
				if more = comma >= 0; more {
					rest = rest[:comma]
				}
				if item != "" && !yield(item) {
					return
				}
			}
		}
	}
}

// parameterOf returns a parameter of an element of Forwarded (RFC 7239 §4), "" where it has none. A quoted comma splits an
// element, which then has none, either: no address and no scheme has one.
func parameterOf(element, name string) string {
	for pair := range strings.SplitSeq(element, ";") {
		key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !ok || !strings.EqualFold(key, name) {
			continue
		}
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value
	}
	return ""
}
