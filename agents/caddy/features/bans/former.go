package bans

import (
	"cmp"
	"net/netip"
	"slices"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Former collects the node's own bans from the agent's security journal, record by record. The zero value holds none.
type Former struct {
	bans map[formerKey]formerBan
	// Counts what was taken, so that the bans come out in the order of writing.
	taken int
}

type formerKey struct {
	siteID  string
	network netip.Prefix
}

type formerBan struct {
	expiresAtMs int64
	at          int
}

// Take takes the next record. What cannot be read is skipped.
func (h *Former) Take(record *edgev1.JournalRecord) {
	for _, ban := range record.GetSecurity().GetBans() {
		network, err := parseNetwork(ban.GetCidr())
		if err != nil {
			continue
		}
		if h.bans == nil {
			h.bans = map[formerKey]formerBan{}
		}
		key := formerKey{ban.GetSiteId(), network}
		h.taken++
		// Of two bans of a network the later end counts.
		h.bans[key] = formerBan{max(ban.GetExpiresAtMs(), h.bans[key].expiresAtMs), h.taken}
	}
	for _, lift := range record.GetSecurityMark().GetLifted() {
		network, err := parseNetwork(lift.GetCidr())
		key := formerKey{lift.GetSiteId(), network}
		if held, ok := h.bans[key]; err == nil && ok && held.expiresAtMs <= lift.GetExpiresNoLaterThanMs()+liftSlack.Milliseconds() {
			delete(h.bans, key)
		}
	}
}

// Load takes in own bans that a former process of this node made, with what is left of their time, until the agent says
// which of them still stand (RestoreOwn).
func (t *Table) Load(former *Former) {
	keys := make([]formerKey, 0, len(former.bans))
	for key := range former.bans {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b formerKey) int { return cmp.Compare(former.bans[a].at, former.bans[b].at) })
	bans := make([]*nodev1.OwnBan, len(keys))
	for i, key := range keys {
		bans[i] = &nodev1.OwnBan{SiteId: key.siteID, Cidr: key.network.String(), ExpiresAtMs: former.bans[key].expiresAtMs}
	}
	t.restoreOwn(bans, true)
}

// dropLoaded drops what was loaded, because the agent's word is there now.
func (e *edit) dropLoaded() {
	for _, r := range e.index.autos {
		if r != nil && r.loaded && r.state == statePlaced {
			e.drop(r)
		}
	}
}

const securityJournal = "security.journal"

// loadOwn takes in the own bans that the agent's journal holds.
func (b *Bans) loadOwn() {
	former := &Former{}
	if b.core.ReadFormer(securityJournal, former.Take) {
		b.Load(former)
	}
}
