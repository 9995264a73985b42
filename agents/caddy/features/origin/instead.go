package origin

import (
	"cmp"
	"errors"
	"strings"
	"time"
	"unique"

	"golang.org/x/net/http/httpguts"

	"edge.svc/caddy/exchange"
)

// times bound what goes on with an origin: a connection, the pauses in sending to it, and its silence.
type times struct{ connect, send, read time.Duration }

// with is the times with those that rules put in their place.
func (t times) with(o *exchange.Overrides) times {
	return times{cmp.Or(o.ConnectTimeout, t.connect), cmp.Or(o.SendTimeout, t.send), cmp.Or(o.ReadTimeout, t.read)}
}

// instead is what rules have dialled in place of what origins say of themselves; its zero value is nothing.
type instead struct {
	port uint16
	host string
	// Server names: of a rule, and of its host header, for origins without a name of their own. Zero for none.
	name, hostName unique.Handle[string]
}

var errHostHeader = errors.New("the host header of a rule is not valid")

// read takes what the rules of a request say. It fails where that cannot be a host.
func (i *instead) read(out *exchange.Outbound) error {
	if out.Port == 0 && out.SNI == "" && out.HostHeader == "" {
		return nil
	}
	i.port, i.host = out.Port, out.HostHeader
	if out.SNI != "" {
		i.name = unique.Make(serverNameOf(out.SNI))
	}
	if i.host != "" {
		if !httpguts.ValidHostHeader(i.host) || strings.ContainsAny(i.host, "/\\") {
			return errHostHeader
		}
		i.hostName = unique.Make(serverNameOf(withoutPort(i.host)))
	}
	return nil
}

var noName unique.Handle[string]

// dialOf is what is dialled for an origin.
func (i *instead) dialOf(o *origin) dialKey {
	key := o.dial
	if i.port != 0 {
		key.port = i.port
	}
	switch {
	case key.tls == plain:
	case i.name != noName:
		key.name = i.name
	case i.hostName != noName && !o.named:
		key.name = i.hostName
	}
	return key
}

// healthOf names what is up or down. Another port, or another name, is another server than the origin's own: a rule that is
// wrong about it does not take the origin from other requests.
func (i *instead) healthOf(o *origin) originKey {
	key := o.health
	if dial := i.dialOf(o); dial != o.dial {
		key.instead = dial
	}
	return key
}

// dialled is an origin as it is to be asked. It stays until the next one.
func (t *fetch) dialled(o *origin) *origin {
	if t.instead == (instead{}) {
		return o
	}
	t.derived = *o
	d := &t.derived
	d.dial, d.health = t.instead.dialOf(o), t.instead.healthOf(o)
	d.shard = d.dial.shard()
	if t.instead.host != "" {
		d.hostHeader = t.instead.host
	}
	return d
}
