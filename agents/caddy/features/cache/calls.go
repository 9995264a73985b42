package cache

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func init() {
	core.RegisterCapability("cache-v1", "cache-zone-v1", "purge-tag-v1", "range-slice-v1")
	core.RegisterCall(edgev1connect.EdgeServiceApplyPurgesProcedure, applyPurges)
}

var errNoCluster = errors.New("the purges are of no cluster")

func applyPurges(_ context.Context, c *core.Core, r *edgev1.ApplyPurgesRequest) (*edgev1.ApplyPurgesResponse, error) {
	if r.GetClusterId() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errNoCluster)
	}
	if err := Of(c).Purge(r); err != nil {
		return nil, err
	}
	return &edgev1.ApplyPurgesResponse{}, nil
}

// FillStatus says up to where purges are in force, and how full the zone is.
func (c *Cache) FillStatus(status *edgev1.GetStatusResponse) {
	if cluster, epoch, sequence := c.purges.Place(); cluster != "" {
		status.Purges = &edgev1.PurgeState{ClusterId: cluster, Epoch: epoch, Sequence: sequence}
	}
	used, most, _ := c.store.Usage()
	status.Cache = &nodev1.CacheUsage{UsedBytes: uint64(max(used, 0)), MaxBytes: uint64(most)}
}
