package exchange

import (
	"net/netip"
	"time"
)

// What features ask of one another without knowing each other: core finds who can do it.

// Bans knows who is banned.
type Bans interface {
	// Banned reports whether an address is banned everywhere, or from the site; "" asks for bans of everything alone.
	Banned(siteID string, addr netip.Addr) bool
	// OnBan registers what is called after a ban took effect, without any lock held. Call it before the first change.
	OnBan(f func(siteID string, network netip.Prefix))
}

// OwnBans takes bans that this node decides on by itself.
type OwnBans interface {
	Banned(siteID string, addr netip.Addr) bool
	// AddOwn bans a network from a site, or from everything when siteID is "".
	AddOwn(siteID string, network netip.Prefix, lifetime time.Duration)
}

// LiftWatcher hears of own bans that were lifted, so that who was banned starts anew.
type LiftWatcher interface {
	Lifted(siteID string, network netip.Prefix)
}

// Passes knows what visitors have shown.
type Passes interface {
	// PassLevel is the highest level that the client of the exchange has a pass of, Normal without one. It is found out
	// once an exchange.
	PassLevel(x *Exchange) Level
}

// Signer signs what clients keep for the edge with the keys of the cluster.
type Signer interface {
	// AppendSignature appends "<id of the key>.<signature>" of a text; false without keys.
	AppendSignature(dst []byte, text string) ([]byte, bool)
	// CheckSignature reports whether a text was signed with a key in use, and whether that key stays for another rotation.
	CheckSignature(text, key, signature string) (valid, lasting bool)
}

// IPLists knows the members of every address list, whatever the list is for.
type IPLists interface {
	// Contains reports whether an address is on a list, which is named by its id. Not whole means that no version of the
	// list ever arrived completely: nobody knows who is on it. An address that is not valid is on no list.
	Contains(t *Tables, list string, addr netip.Addr) (in, whole bool)
}
