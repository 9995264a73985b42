package bans

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// A lifted own ban may have been stamped by a clock that differs a little.
const liftSlack = time.Second

// effect is a ban that took effect with a change.
type effect struct {
	siteID string
	prefix netip.Prefix
}

// Apply moves the table from base to target: it drops the removed ids, takes in the upserts (a known id is replaced)
// and drops the node's own bans that were lifted. It fails with ErrBase, and changes nothing, when base is not the
// position held. A ban that cannot be read is skipped and reported as unapplied.
func (t *Table) Apply(base, target *nodev1.BanPosition, upserts []*nodev1.Ban, removed []string, lifted []*nodev1.OwnBanLift) (*edgev1.BanState, error) {
	t.mu.Lock()
	if base.GetEpoch() != t.position.GetEpoch() || base.GetSequence() != t.position.GetSequence() {
		t.mu.Unlock()
		return nil, ErrBase
	}
	now := t.now()
	e := t.index.edit(len(upserts) + len(removed))
	t.expire(e)
	for _, id := range removed {
		if r := t.index.ids[id]; r != nil {
			e.drop(r)
		}
	}
	t.lift(e, now, lifted)
	effects := make([]effect, 0, len(upserts))
	for _, ban := range upserts {
		if r := t.upsert(e, now, ban); r != nil {
			effects = append(effects, effect{r.scope.siteID, r.prefix()})
		}
	}
	effects = append(effects, t.placeWaiting(e)...)
	return t.finish(e, target, effects), nil
}

// Replace makes the console's bans exactly these, at this position. The node's own bans stay.
func (t *Table) Replace(position *nodev1.BanPosition, bans []*nodev1.Ban) *edgev1.BanState {
	t.mu.Lock()
	now := t.now()
	clock := int64(now.Sub(t.start))
	old := t.index
	t.index = newIndex(t.capacity)
	e := t.index.edit(bulkChange)
	for _, r := range old.autos {
		if r.source == SourceOwn && r.state == statePlaced && r.expires > clock {
			t.admit(e, &record{expires: r.expires, addr: r.addr, bits: r.bits, is4: r.is4, source: SourceOwn, loaded: r.loaded}, r.scope.siteID)
		}
	}
	var effects []effect
	for _, ban := range admissionOrder(bans) {
		r := t.upsert(e, now, ban)
		if r == nil || t.onBan == nil {
			continue
		}
		if p := r.prefix(); !old.bans(r.scope.siteID, p, clock) {
			effects = append(effects, effect{r.scope.siteID, p})
		}
	}
	// The new view is complete before readers get it.
	e.publish()
	t.view.Store(t.index.view)
	return t.finish(e, position, effects)
}

// Retry tries the manual bans that did not fit once more.
func (t *Table) Retry() *edgev1.BanState {
	t.mu.Lock()
	e := t.index.edit(0)
	t.expire(e)
	return t.finish(e, t.position, t.placeWaiting(e))
}

// AddOwn bans a network by this node's own decision; an existing own ban keeps the later end.
func (t *Table) AddOwn(siteID string, prefix netip.Prefix, lifetime time.Duration) {
	t.mu.Lock()
	e := t.index.edit(0)
	t.expire(e)
	var effects []effect
	if prefix = prefix.Masked(); t.admitOwn(e, siteID, prefix, t.clock()+int64(min(lifetime, maxLifetime)), false) {
		effects = append(effects, effect{siteID, prefix})
	}
	t.finish(e, t.position, effects)
}

// RestoreOwn takes in own bans that a former process of this node made, with what is left of their time. They are all
// that the agent knows of, so they replace what was loaded from its journal; what this process decided itself stays.
func (t *Table) RestoreOwn(bans []*nodev1.OwnBan) *edgev1.BanState {
	return t.restoreOwn(bans, false)
}

func (t *Table) restoreOwn(bans []*nodev1.OwnBan, loaded bool) *edgev1.BanState {
	t.mu.Lock()
	now := t.now()
	e := t.index.edit(len(bans))
	t.expire(e)
	if !loaded {
		e.dropLoaded()
	}
	var effects []effect
	for _, ban := range bans {
		prefix, err := parseNetwork(ban.GetCidr())
		expires := t.expiry(now, ban.GetExpiresAtMs())
		if err != nil || expires <= int64(now.Sub(t.start)) {
			continue
		}
		if t.admitOwn(e, ban.GetSiteId(), prefix, expires, loaded) {
			effects = append(effects, effect{ban.GetSiteId(), prefix})
		}
	}
	return t.finish(e, t.position, effects)
}

// admitOwn bans a network until then and reports whether that changed anything.
func (t *Table) admitOwn(e *edit, siteID string, prefix netip.Prefix, expires int64, loaded bool) bool {
	held := e.own(e.scope(siteID), prefix)
	if held != nil && held.expires >= expires {
		held.loaded = held.loaded && loaded
		return false
	}
	if held != nil {
		e.drop(held)
	}
	r := &record{source: SourceOwn, expires: expires, loaded: loaded}
	r.setPrefix(prefix)
	return t.admit(e, r, siteID)
}

// finish publishes a change, releases the lock and tells the observer.
func (t *Table) finish(e *edit, position *nodev1.BanPosition, effects []effect) *edgev1.BanState {
	e.publish()
	t.position = &nodev1.BanPosition{}
	proto.Merge(t.position, position)
	state, onBan := t.state(), t.onBan
	t.schedule()
	t.mu.Unlock()
	if onBan != nil {
		for _, f := range effects {
			onBan(f.siteID, f.prefix)
		}
	}
	return state
}

// upsert takes in one console ban and returns it when it is in effect.
func (t *Table) upsert(e *edit, now time.Time, ban *nodev1.Ban) *record {
	if held := t.index.ids[ban.GetId()]; held != nil {
		e.drop(held)
	}
	r := &record{id: ban.GetId(), source: sourceOf(ban.GetSource()), expires: t.expiry(now, ban.GetExpiresAtMs())}
	if r.expires <= int64(now.Sub(t.start)) {
		return nil
	}
	p, err := parseNetwork(ban.GetCidr())
	switch {
	case err == nil:
		r.setPrefix(p)
	case r.source == SourceManual:
		t.wait(r)
		return nil
	default:
		t.autoEvicted++
		return nil
	}
	if !t.admit(e, r, ban.GetSiteId()) {
		return nil
	}
	return r
}

// admit places a record, giving up the oldest automatic bans for room. Without room a manual ban waits and an
// automatic one is dropped.
func (t *Table) admit(e *edit, r *record, siteID string) bool {
	x := t.index
	r.scope = e.scope(siteID)
	if !t.makeRoom(e, r) {
		if r.source == SourceManual {
			t.wait(r)
		} else {
			t.autoEvicted++
		}
		return false
	}
	e.link(r)
	heap.Push(&x.expiry, r)
	if r.source != SourceOwn {
		x.ids[r.id] = r
	}
	return true
}

// makeRoom gives up automatic bans, oldest first, until r fits, and says whether it does.
func (t *Table) makeRoom(e *edit, r *record) bool {
	x := t.index
	for x.placed >= t.capacity || x.bytes+r.bytes() > t.maxBytes {
		oldest := x.oldestAuto()
		if oldest == nil {
			return false
		}
		e.drop(oldest)
		t.autoEvicted++
	}
	return true
}

// wait remembers a manual ban that is not in effect, for the report and for the next try.
func (t *Table) wait(r *record) {
	x := t.index
	if x.waiting == maxWaiting {
		x.uncounted++
		return
	}
	r.state = stateWaiting
	x.waiting++
	x.ids[r.id] = r
	heap.Push(&x.expiry, r)
	x.queue = compact(append(x.queue, r), x.waiting, stateWaiting)
}

// placeWaiting puts waiting bans into effect, oldest first, until one does not fit.
func (t *Table) placeWaiting(e *edit) []effect {
	x := t.index
	if x.waiting == 0 {
		return nil
	}
	var effects []effect
	for _, r := range x.queue {
		// Without a scope it could not be read.
		if r.state != stateWaiting || r.scope == nil {
			continue
		}
		r.scope = e.scope(r.scope.siteID)
		if !t.makeRoom(e, r) {
			break
		}
		e.link(r)
		x.waiting--
		effects = append(effects, effect{r.scope.siteID, r.prefix()})
	}
	x.queue = compact(x.queue, x.waiting, stateWaiting)
	return effects
}

// lift drops own bans that end no later than the console says.
func (t *Table) lift(e *edit, now time.Time, lifted []*nodev1.OwnBanLift) {
	for _, l := range lifted {
		p, err := parseNetwork(l.GetCidr())
		if err != nil {
			continue
		}
		latest := t.expiry(now, l.GetExpiresNoLaterThanMs()) + int64(liftSlack)
		if r := e.own(e.scope(l.GetSiteId()), p); r != nil && r.expires <= latest {
			e.drop(r)
		}
	}
}

// admissionOrder puts manual bans first and each kind oldest first, so that what is given up for room is automatic
// and old.
func admissionOrder(bans []*nodev1.Ban) []*nodev1.Ban {
	ordered := slices.Clone(bans)
	slices.SortStableFunc(ordered, func(a, b *nodev1.Ban) int {
		return cmp.Or(cmp.Compare(sourceOf(a.GetSource()), sourceOf(b.GetSource())), cmp.Compare(a.GetCreatedAtMs(), b.GetCreatedAtMs()))
	})
	return ordered
}
