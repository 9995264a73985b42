package svccore

import (
	"net/netip"

	"github.com/gaissmai/bart"

	"edge.svc/caddy/svcorigin"
)

// Tables is all configuration at one moment. It is immutable: a request loads it once and sees one configuration from
// its first stage to its last.
type Tables struct {
	ClientIP *ClientIP
	Unknown  *UnknownHosts
	// Policy says which addresses origins may have.
	Policy *svcorigin.AddressPolicy
	// Platform is what is asked of visitors of every site, CCTemplate the thresholds of sites that follow the template.
	Platform   *PlatformProtection
	CCTemplate *CCThresholds

	sites        pmap[*Site]
	protection   pmap[*Protection]
	hosts        hostTable
	allow, block *networks
}

func emptyTables() *Tables {
	return &Tables{
		ClientIP:   directClientIP,
		Unknown:    unknownHostPages,
		Policy:     defaultPolicy,
		Platform:   calmPlatform,
		CCTemplate: defaultCCTemplate,
		allow:      new(bart.Table[uint32]),
		block:      new(bart.Table[uint32]),
	}
}

// SiteOfHost returns the site of a host in normalised form, nil when none has it.
func (t *Tables) SiteOfHost(host string) *Site { return t.hosts.find(host) }

// DefaultSite returns the site that answers for unknown hosts, nil when there is none or it is disabled.
func (t *Tables) DefaultSite() *Site {
	site, ok := t.sites.get(t.Unknown.DefaultSiteID)
	if !ok || site.Disabled {
		return nil
	}
	return site
}

// Sites is the number of sites, disabled ones included.
func (t *Tables) Sites() int { return t.sites.size }

// Exempt reports whether addr is never banned: it is on an allow list, or a proxy whose header is believed.
func (t *Tables) Exempt(addr netip.Addr) bool {
	return t.Allowed(addr) || t.ClientIP.Trusts(addr)
}

// Allowed reports whether addr is on an allow list.
func (t *Tables) Allowed(addr netip.Addr) bool { return t.allow.Size() > 0 && contains(t.allow, addr) }

// Blocked reports whether addr is on a block list and on no allow list.
func (t *Tables) Blocked(addr netip.Addr) bool {
	return t.block.Size() > 0 && contains(t.block, addr) && !t.Allowed(addr)
}

func contains(t *networks, addr netip.Addr) bool {
	_, ok := t.Lookup(addr)
	return ok
}

// writerState is what only the writer needs to make the next tables. Changes of it cannot fail.
type writerState struct {
	lists map[string]*ipList
	// Names claimed by more than one site.
	contested map[siteName][]*Site
	// Body hashes of the running entries other than sites, which know theirs.
	running map[entryKey][32]byte
	failed  map[entryKey]*failure
}

func newWriterState() *writerState {
	return &writerState{
		lists:     map[string]*ipList{},
		contested: map[siteName][]*Site{},
		running:   map[entryKey][32]byte{},
		failed:    map[entryKey]*failure{},
	}
}

// edit is one change on its way from the published tables to the next ones.
type edit struct {
	core   *Core
	tables *Tables
	state  *writerState
	nodes  *peditor
	// The tables of IP lists belong to this edit.
	ownAllow, ownBlock bool
}

// apply puts a compiled entry into an edit. It cannot fail, so a change is taken whole.
type apply func(*edit)
