package cc

import (
	"context"
	"fmt"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func newTestOutbox() *outbox { return newOutbox("boot", time.Now) }

func (o *outbox) all(after uint64) (events []*nodev1.SecurityEvent, sites map[string]uint32, last uint64) {
	batches, _ := o.next(after)
	sites = map[string]uint32{}
	for _, b := range batches {
		events, last = append(events, b.GetEvents()...), b.GetSequence()
		for _, s := range b.GetSites() {
			sites[s.GetSiteId()] = s.GetSite().GetLevel()
		}
	}
	return events, sites, last
}

func levelOf(id string, level uint32) *edgev1.SiteLevelState {
	return &edgev1.SiteLevelState{SiteId: id, Site: &edgev1.LevelState{Level: level}}
}

func TestEventsBeyondTheLimitAreDroppedOldestFirstAndCounted(t *testing.T) {
	o := newTestOutbox()
	o.site(levelOf("early", 3))
	for range maxQueued + 2000 {
		o.event(&nodev1.SecurityEvent{})
	}
	events, sites, _ := o.all(0)
	if len(events) > maxQueued || len(events) < maxQueued-maxPerBatch || events[len(events)-1].GetId() != fmt.Sprintf("boot-%d", maxQueued+2000) {
		t.Errorf("%d events, the last is %s", len(events), events[len(events)-1].GetId())
	}
	if int(o.dropped) != maxQueued+2000-len(events) {
		t.Errorf("%d counted as dropped, %d are", o.dropped, maxQueued+2000-len(events))
	}
	if sites["early"] != 3 {
		t.Errorf("the state of a site was dropped: %v", sites)
	}
}

func TestWhatWasSentGivesWayUncounted(t *testing.T) {
	o := newTestOutbox()
	for range 3 {
		for range maxQueued / 2 {
			o.event(&nodev1.SecurityEvent{})
		}
		o.next(0)
	}
	if o.dropped != 0 {
		t.Errorf("%d events count as dropped although they were sent", o.dropped)
	}
	if events, _, _ := o.all(0); len(events) > maxQueued {
		t.Errorf("%d events are kept", len(events))
	}
}

func TestAcknowledgedBatchesAreForgotten(t *testing.T) {
	o := newTestOutbox()
	o.event(&nodev1.SecurityEvent{})
	_, _, first := o.all(0)
	o.event(&nodev1.SecurityEvent{})
	o.acknowledge(first)
	if events, _, last := o.all(0); len(events) != 1 || events[0].GetId() != "boot-2" || last != first+1 {
		t.Errorf("%v", events)
	}
	o.acknowledge(first + 1)
	if events, _, _ := o.all(0); len(events) != 0 || o.queued != 0 {
		t.Errorf("%v, %d queued", events, o.queued)
	}
}

func TestNewestStateOfASiteWins(t *testing.T) {
	o := newTestOutbox()
	for level := range uint32(5) {
		o.site(levelOf("a", level))
	}
	batches, _ := o.next(0)
	if len(batches) != 1 || len(batches[0].GetSites()) != 1 || batches[0].GetSites()[0].GetSite().GetLevel() != 4 {
		t.Errorf("%v", batches)
	}
	// States alone are bounded, too.
	for i := range 3 * maxQueued {
		o.site(levelOf(fmt.Sprint(i%7), uint32(i%5)))
		o.next(o.sequence)
	}
	if len(o.sealed) > maxQueued+1 {
		t.Errorf("%d batches are kept", len(o.sealed))
	}
}

func TestFirstIsSentAtOnceAndARunOfEventsTogether(t *testing.T) {
	g := New(Options{InstanceID: "boot"})
	ctx, cancel := context.WithCancel(t.Context())
	sent, goOn := make(chan *edgev1.SecurityBatch), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- g.Watch(ctx, "", 0, func(b *edgev1.SecurityBatch) error {
			sent <- b
			<-goOn
			return nil
		})
	}()
	g.outbox.event(&nodev1.SecurityEvent{})
	if b := <-sent; len(b.GetEvents()) != 1 {
		t.Errorf("%d events", len(b.GetEvents()))
	}
	for range 200 {
		g.outbox.event(&nodev1.SecurityEvent{})
	}
	close(goOn)
	if b := <-sent; len(b.GetEvents()) != 200 {
		t.Errorf("%d events", len(b.GetEvents()))
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the stream ended without a reason")
	}
}
