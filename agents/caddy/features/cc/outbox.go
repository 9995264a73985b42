package cc

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	maxQueued   = 10_000
	maxPerBatch = 500
	batchDelay  = 50 * time.Millisecond
)

// outbox holds what the agent does not have yet, in batches with rising numbers. What was sent stays until the agent
// says that it is stored, or until room is needed. When it is full the oldest goes; what was never sent counts as
// dropped. The newest state of a site is never dropped.
type outbox struct {
	instance string
	now      func() time.Time

	mu       sync.Mutex
	events   uint64
	sequence uint64
	sealed   []*edgev1.SecurityBatch
	// Number of the last batch that was sent.
	sent   uint64
	open   *edgev1.SecurityBatch
	queued int
	// The newest state of each site that has one here.
	latest  map[string]*edgev1.SiteLevelState
	dropped uint64
	changed chan struct{}
}

func newOutbox(instance string, now func() time.Time) *outbox {
	return &outbox{instance: instance, now: now, open: new(edgev1.SecurityBatch), latest: map[string]*edgev1.SiteLevelState{}, changed: make(chan struct{})}
}

// wake tells the waiting streams.
func (o *outbox) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func itemsOf(b *edgev1.SecurityBatch) int {
	return len(b.GetEvents()) + len(b.GetBans()) + len(b.GetSites())
}

func (o *outbox) added() {
	if o.queued++; itemsOf(o.open) >= maxPerBatch {
		o.seal()
	}
	o.makeRoom()
	o.wake()
}

func (o *outbox) seal() {
	o.sequence++
	o.open.Sequence, o.open.Dropped = o.sequence, o.dropped
	o.sealed = append(o.sealed, o.open)
	o.open = new(edgev1.SecurityBatch)
}

func (o *outbox) makeRoom() {
	for o.queued > maxQueued && len(o.sealed) > 0 {
		oldest := o.sealed[0]
		o.sealed[0] = nil
		o.sealed = o.sealed[1:]
		o.queued -= itemsOf(oldest)
		if oldest.GetSequence() > o.sent {
			o.dropped += uint64(len(oldest.GetEvents()))
		}
		o.carry(oldest.GetSites())
	}
}

// carry puts states that would be lost into the open batch, unless something newer is known.
func (o *outbox) carry(states []*edgev1.SiteLevelState) {
	for _, s := range states {
		if o.latest[s.GetSiteId()] == s {
			o.open.Sites = append(o.open.Sites, s)
			o.queued++
		}
	}
}

// event queues an event and gives it its id and time.
func (o *outbox) event(e *nodev1.SecurityEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.eventLocked(e)
}

func (o *outbox) eventLocked(e *nodev1.SecurityEvent) {
	o.events++
	e.Id = o.instance + "-" + strconv.FormatUint(o.events, 10)
	e.OccurredAtMs = o.now().UnixMilli()
	o.open.Events = append(o.open.Events, e)
	o.added()
}

// clientBanned queues the ban of a client by one site, and its event.
func (o *outbox) clientBanned(siteID string, n network, t *Thresholds, estimate float64, level Level) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.banLocked(siteID, n, "cc_ip_rate", metricIP, t.IPBan, estimate/t.Window.Seconds(), t.IPQPS, t.Window)
	o.eventLocked(&nodev1.SecurityEvent{
		SiteId: siteID, Kind: nodev1.SecurityEventKind_SECURITY_EVENT_KIND_IP_BANNED, Level: uint32(level), PreviousLevel: uint32(level),
		Address: n.String(), Metric: metricIP, Observed: rounded(estimate / t.Window.Seconds()), Threshold: float64(t.IPQPS),
		TopIps: []*nodev1.Heavy{{Value: n.String(), Count: uint64(estimate)}},
	})
}

// scannerBanned queues a global ban.
func (o *outbox) scannerBanned(n network, lifetime time.Duration, requests, threshold uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.banLocked("", n, "unknown_host_scan", "unknown_host_requests", lifetime, float64(requests), threshold, scanWindow)
}

func (o *outbox) banLocked(siteID string, n network, reason, metric string, lifetime time.Duration, observed float64, threshold uint32, window time.Duration) {
	now := o.now()
	o.open.Bans = append(o.open.Bans, &nodev1.OwnBan{
		SiteId: siteID, Cidr: n.prefix().String(), CreatedAtMs: now.UnixMilli(), ExpiresAtMs: now.Add(lifetime).UnixMilli(),
		Reason: reason, Metric: metric, Observed: uint64(observed), Threshold: uint64(threshold),
		WindowSeconds: uint32(window / time.Second),
	})
	o.added()
}

// site queues the state of a site in the place of what the open batch has of it.
func (o *outbox) site(state *edgev1.SiteLevelState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.latest[state.GetSiteId()] = state
	for i, known := range o.open.Sites {
		if known.GetSiteId() == state.GetSiteId() {
			o.open.Sites[i] = state
			return
		}
	}
	o.open.Sites = append(o.open.Sites, state)
	o.added()
}

// acknowledge forgets what the agent stored.
func (o *outbox) acknowledge(sequence uint64) {
	for len(o.sealed) > 0 && o.sealed[0].GetSequence() <= sequence {
		o.queued -= itemsOf(o.sealed[0])
		for _, s := range o.sealed[0].GetSites() {
			if o.latest[s.GetSiteId()] == s {
				delete(o.latest, s.GetSiteId())
			}
		}
		o.sealed[0] = nil
		o.sealed = o.sealed[1:]
	}
}

// next returns the batches after a number, and what is closed when there are more.
func (o *outbox) next(after uint64) ([]*edgev1.SecurityBatch, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if itemsOf(o.open) > 0 {
		o.seal()
	}
	// Their numbers have no gaps.
	known := uint64(0)
	if len(o.sealed) > 0 {
		if first := o.sealed[0].GetSequence(); after >= first {
			known = min(after-first+1, uint64(len(o.sealed)))
		}
	}
	out := slices.Clone(o.sealed[known:])
	if len(out) > 0 {
		o.sent = max(o.sent, o.sequence)
	}
	return out, o.changed
}

// Watch sends what the agent does not have yet, and from then on what happens, until the context ends or send fails. A
// cursor of another process is none. What comes after a quiet moment is sent at once, else together with what else comes
// within 50 ms.
func (g *Guard) Watch(ctx context.Context, instanceID string, after uint64, send func(*edgev1.SecurityBatch) error) error {
	o := g.outbox
	if instanceID != o.instance {
		after = 0
	}
	o.mu.Lock()
	o.acknowledge(after)
	o.mu.Unlock()
	for {
		batches, changed := o.next(after)
		for _, b := range batches {
			if err := send(b); err != nil {
				return err
			}
			after = b.GetSequence()
		}
		if len(batches) > 0 && !pause(ctx, batchDelay) {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
