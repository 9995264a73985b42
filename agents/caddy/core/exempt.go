package core

import (
	"net/netip"
	"slices"

	"edge.svc/caddy/exchange"
)

// Exemption names clients that are never banned nor counted as heavy.
type Exemption struct {
	Exempts func(*exchange.Tables, netip.Addr) bool
	// Changed reports whether addresses may be exempt in before that are not in after.
	Changed func(before, after *exchange.Tables) bool
}

var exemptions []Exemption

// RegisterExemption adds to who is exempt. Call it from init.
func RegisterExemption(e Exemption) { exemptions = append(exemptions, e) }

// Exempt reports whether addr is never banned: it is on an allow list, say, or a proxy whose header is believed.
func Exempt(t *exchange.Tables, addr netip.Addr) bool {
	for i := range exemptions {
		if exemptions[i].Exempts(t, addr) {
			return true
		}
	}
	return false
}

// ExemptClient reports whether bans and CC mitigation pass the client of an exchange over. An address that is merely
// claimed spares nothing.
func ExemptClient(x *exchange.Exchange) bool { return !x.In.Claimed && Exempt(x.Tables, x.In.Client) }

// OnExemptions registers what is called after the addresses exempt from bans changed. It is called while the
// configuration is locked against other changes. Call it before the first change.
func (c *Core) OnExemptions(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onExemptions = append(c.onExemptions, f)
}

// OnChange registers what is called after the configuration changed, while it is locked against other changes. It must
// not block. Call it while components are made.
func (c *Core) OnChange(f func()) { c.onChange = append(c.onChange, f) }

// publish makes tables the configuration of this moment.
func (c *Core) publish(tables *exchange.Tables) {
	before := c.tables.Swap(tables)
	defer func() {
		for _, f := range c.onChange {
			f()
		}
	}()
	if slices.ContainsFunc(exemptions, func(e Exemption) bool { return e.Changed(before, tables) }) {
		for _, f := range c.onExemptions {
			f()
		}
	}
}
