package listen

import (
	"errors"
	"fmt"
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
			if item = strings.Trim(item, " \t"); item == "" {
				// RFC 9110 §5.6.1.2: a recipient ignores empty elements of a list.
				continue
			}
			if c.header == "Forwarded" {
				item = forwardedFor(item)
			}
			addr, ok := address.ParseForwarded(item)
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

// forwardedFor returns the node that an element of Forwarded was sent for (RFC 7239 §4), "" where it names none. A
// quoted comma splits an element, which then names none, either: no address has one.
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !ok || !strings.EqualFold(name, "for") {
			continue
		}
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value
	}
	return ""
}
