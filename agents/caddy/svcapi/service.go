package svcapi

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svcbans"
	"edge.svc/caddy/svccore"
	"edge.svc/caddy/svclisten"
)

// service answers the agent. A change that does not start where the core is answers FAILED_PRECONDITION.
type service struct {
	// Calls this node does not know answer so.
	edgev1connect.UnimplementedEdgeServiceHandler

	core *svccore.Core
}

var errNoTarget = connect.NewError(connect.CodeInvalidArgument, errors.New("target is missing"))

func (s *service) GetStatus(context.Context, *connect.Request[edgev1.GetStatusRequest]) (*connect.Response[edgev1.GetStatusResponse], error) {
	status := s.core.Status()
	return connect.NewResponse(&edgev1.GetStatusResponse{
		InstanceId:        s.core.InstanceID,
		Version:           svccore.Version,
		Config:            status.Position,
		Bans:              s.core.Bans.State(),
		Sites:             uint64(status.Sites),
		ActiveConnections: uint64(max(svclisten.Process.Connections(), 0)),
		UptimeSeconds:     uint64(time.Since(s.core.Started).Seconds()),
		Failed:            status.Failed,
		Warnings:          status.Warnings,
		Serving:           svclisten.Process.Serving(),
		Security:          s.core.CC.Security(),

		ChallengeKeysVersion: s.core.Challenges.KeysVersion(),
		Challenges:           challengeCounters(s.core.Challenges.Counters()),
	}), nil
}

func (s *service) ApplyConfig(_ context.Context, r *connect.Request[edgev1.ApplyConfigRequest]) (*connect.Response[edgev1.ApplyConfigResponse], error) {
	if r.Msg.GetTarget() == nil {
		return nil, errNoTarget
	}
	position, failed, err := s.core.Apply(r.Msg.GetBase(), r.Msg.GetTarget(), r.Msg.GetUpserts(), r.Msg.GetDeletes())
	if err != nil {
		return nil, asConnect(err)
	}
	return configResponse(position, failed), nil
}

func (s *service) ReloadConfig(context.Context, *connect.Request[edgev1.ReloadConfigRequest]) (*connect.Response[edgev1.ApplyConfigResponse], error) {
	return configResponse(s.core.ReloadConfig()), nil
}

func (s *service) ApplyBans(_ context.Context, r *connect.Request[edgev1.ApplyBansRequest]) (*connect.Response[edgev1.ApplyBansResponse], error) {
	if r.Msg.GetTarget() == nil {
		return nil, errNoTarget
	}
	state, err := s.core.ApplyBans(r.Msg.GetBase(), r.Msg.GetTarget(), r.Msg.GetUpserts(), r.Msg.GetRemovedIds(), r.Msg.GetLiftedOwn())
	if err != nil {
		return nil, asConnect(err)
	}
	return bansResponse(state), nil
}

func (s *service) ReloadBans(context.Context, *connect.Request[edgev1.ReloadBansRequest]) (*connect.Response[edgev1.ApplyBansResponse], error) {
	return bansResponse(s.core.ReloadBans()), nil
}

func (s *service) RetryBans(context.Context, *connect.Request[edgev1.RetryBansRequest]) (*connect.Response[edgev1.ApplyBansResponse], error) {
	return bansResponse(s.core.Bans.Retry()), nil
}

func (s *service) DrainStats(_ context.Context, r *connect.Request[edgev1.DrainStatsRequest]) (*connect.Response[edgev1.DrainStatsResponse], error) {
	sequence, minutes := s.core.Stats.Drain(r.Msg.GetAcknowledged())
	return connect.NewResponse(&edgev1.DrainStatsResponse{Sequence: sequence, Minutes: minutes}), nil
}

func (s *service) WatchSecurity(ctx context.Context, r *connect.Request[edgev1.WatchSecurityRequest], stream *connect.ServerStream[edgev1.SecurityBatch]) error {
	// Headers at once, so that the agent sees the stream open while nothing happens.
	if err := stream.Send(nil); err != nil {
		return err
	}
	return s.core.CC.Watch(ctx, r.Msg.GetInstanceId(), r.Msg.GetAfter(), stream.Send)
}

func (s *service) RestoreSecurity(_ context.Context, r *connect.Request[edgev1.RestoreSecurityRequest]) (*connect.Response[edgev1.RestoreSecurityResponse], error) {
	s.core.Bans.RestoreOwn(r.Msg.GetBans())
	s.core.CC.Restore(r.Msg.GetSites())
	return connect.NewResponse(&edgev1.RestoreSecurityResponse{}), nil
}

func configResponse(position *nodev1.ConfigPosition, failed []*nodev1.FailedEntry) *connect.Response[edgev1.ApplyConfigResponse] {
	return connect.NewResponse(&edgev1.ApplyConfigResponse{Position: position, Failed: failed})
}

func bansResponse(state *edgev1.BanState) *connect.Response[edgev1.ApplyBansResponse] {
	return connect.NewResponse(&edgev1.ApplyBansResponse{State: state})
}

func asConnect(err error) error {
	if errors.Is(err, svccore.ErrBase) || errors.Is(err, svcbans.ErrBase) {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}

var _ edgev1connect.EdgeServiceHandler = (*service)(nil)
