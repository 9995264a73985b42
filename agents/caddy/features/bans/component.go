package bans

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/lifesign"
)

const bansJournal = "bans.journal"

// Bans is the ban table of a core, with the journal that it comes from.
type Bans struct {
	*Table
	core *core.Core
	// Serialises readings of the journal.
	reloading sync.Mutex
}

var (
	capacity  = core.NewOption("ban_capacity", 100_000, positive)
	maxMiB    = core.NewOption("ban_max_mib", 32, positive)
	component = core.NewComponent("bans", func(c *core.Core) *Bans {
		return &Bans{Table: New(capacity.Of(c), int64(maxMiB.Of(c))<<20, c.Clock()), core: c}
	})
)

func init() {
	core.RegisterCapability("bans-v1")
	core.RegisterCall(edgev1connect.EdgeServiceApplyBansProcedure, applyBans)
	core.RegisterCall(edgev1connect.EdgeServiceReloadBansProcedure, reloadBans)
	core.RegisterCall(edgev1connect.EdgeServiceRetryBansProcedure, retryBans)
}

func positive(n int) error {
	if n < 1 {
		return fmt.Errorf("is %d and must be positive", n)
	}
	return nil
}

// Of returns the bans of a core.
func Of(c *core.Core) *Bans { return component.Of(c) }

// Restore reads the journals when the process starts: the console's bans, and the node's own. What cannot be read stands in
// the status.
func (b *Bans) Restore() {
	lifesign.Tell(lifesign.ReadingBans)
	_, _ = b.readJournal(true)
	lifesign.Tell(lifesign.Restoring)
	b.loadOwn()
}

// ReloadBans reads the ban journal and swaps to what it says. It fails with core.ErrJournal, changing nothing, when the
// journal does not say it.
func (b *Bans) ReloadBans() (*edgev1.BanState, error) { return b.readJournal(false) }

func (b *Bans) readJournal(isNew bool) (*edgev1.BanState, error) {
	b.reloading.Lock()
	defer b.reloading.Unlock()
	position := &nodev1.BanPosition{}
	// Bans by id, in the order in which they came.
	at := map[string]int{}
	var bans []*nodev1.Ban
	var r core.Reading
	r.Header, r.Damage = core.ReadJournal(filepath.Join(b.core.StateDir(), bansJournal), func(record *edgev1.JournalRecord) {
		change := record.GetBans()
		for _, id := range change.GetRemovedIds() {
			if i, ok := at[id]; ok {
				bans[i] = nil
				delete(at, id)
			}
		}
		for _, ban := range change.GetUpserts() {
			if i, ok := at[ban.GetId()]; ok {
				bans[i] = ban
				continue
			}
			at[ban.GetId()] = len(bans)
			bans = append(bans, ban)
		}
		if change.GetPosition() != nil {
			position = change.GetPosition()
			r.Stated = true
		}
	})
	if err := b.core.Judge(bansJournal, &r, isNew, b.State().GetPosition().GetEpoch() != 0); err != nil {
		return nil, err
	}
	bans = slices.DeleteFunc(bans, func(ban *nodev1.Ban) bool { return ban == nil })
	return b.Replace(position, bans), nil
}

// ApplyBans moves the bans from base to target; it fails with ErrBase when base is not the position held.
func (b *Bans) ApplyBans(base, target *nodev1.BanPosition, upserts []*nodev1.Ban, removed []string, lifted []*nodev1.OwnBanLift) (*edgev1.BanState, error) {
	state, err := b.Apply(base, target, upserts, removed, lifted)
	if err == nil {
		b.core.Followed(bansJournal)
		b.tellLifted(lifted)
	}
	return state, err
}

// tellLifted makes clients whose own bans were lifted start anew.
func (b *Bans) tellLifted(lifted []*nodev1.OwnBanLift) {
	if len(lifted) == 0 {
		return
	}
	watchers := core.Each[exchange.LiftWatcher](b.core)
	for _, l := range lifted {
		if prefix, err := netip.ParsePrefix(l.GetCidr()); err == nil {
			for _, w := range watchers {
				w.Lifted(l.GetSiteId(), prefix)
			}
		}
	}
}

// RestoreSecurity takes in own bans of a former process.
func (b *Bans) RestoreSecurity(r *edgev1.RestoreSecurityRequest) { b.RestoreOwn(r.GetBans()) }

// FillStatus says what bans are held.
func (b *Bans) FillStatus(status *edgev1.GetStatusResponse) { status.Bans = b.State() }

func applyBans(_ context.Context, c *core.Core, r *edgev1.ApplyBansRequest) (*edgev1.ApplyBansResponse, error) {
	if r.GetTarget() == nil {
		return nil, core.ErrNoTarget
	}
	state, err := Of(c).ApplyBans(r.GetBase(), r.GetTarget(), r.GetUpserts(), r.GetRemovedIds(), r.GetLiftedOwn())
	if errors.Is(err, ErrBase) {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return &edgev1.ApplyBansResponse{State: state}, err
}

func reloadBans(_ context.Context, c *core.Core, _ *edgev1.ReloadBansRequest) (*edgev1.ApplyBansResponse, error) {
	state, err := Of(c).ReloadBans()
	if err != nil {
		return nil, err
	}
	return &edgev1.ApplyBansResponse{State: state}, nil
}

func retryBans(_ context.Context, c *core.Core, _ *edgev1.RetryBansRequest) (*edgev1.ApplyBansResponse, error) {
	return &edgev1.ApplyBansResponse{State: Of(c).Retry()}, nil
}

var (
	_ exchange.Bans    = (*Bans)(nil)
	_ exchange.OwnBans = (*Bans)(nil)
)
