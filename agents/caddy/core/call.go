package core

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/confine"
)

// Call is something the agent can ask of the edge.
type Call struct {
	// Procedure is the path of the call.
	Procedure string
	// Stream says that the answer takes as long as it likes.
	Stream  bool
	Handler func(c *Core, options ...connect.HandlerOption) http.Handler
}

var calls []Call

// Calls returns what features registered.
func Calls() []Call { return slices.Clone(calls) }

// RegisterCall adds a call with one answer. Errors that are no connect.Error come to the agent as INTERNAL, ErrBase as
// FAILED_PRECONDITION. Call it from init.
func RegisterCall[Req, Res any](procedure string, answer func(ctx context.Context, c *Core, r *Req) (*Res, error)) {
	calls = append(calls, Call{procedure, false, func(c *Core, options ...connect.HandlerOption) http.Handler {
		return connect.NewUnaryHandler(procedure, func(ctx context.Context, r *connect.Request[Req]) (*connect.Response[Res], error) {
			response, err := answer(ctx, c, r.Msg)
			if err != nil {
				return nil, asConnect(err)
			}
			return connect.NewResponse(response), nil
		}, options...)
	}})
}

// RegisterStream adds a call that answers with as many messages as it likes, until its context ends or send fails. Call
// it from init.
func RegisterStream[Req, Res any](procedure string, answer func(ctx context.Context, c *Core, r *Req, send func(*Res) error) error) {
	calls = append(calls, Call{procedure, true, func(c *Core, options ...connect.HandlerOption) http.Handler {
		return connect.NewServerStreamHandler(procedure, func(ctx context.Context, r *connect.Request[Req], stream *connect.ServerStream[Res]) error {
			// Headers at once, so that the agent sees the stream open while nothing happens.
			if err := stream.Send(nil); err != nil {
				return err
			}
			return answer(ctx, c, r.Msg, stream.Send)
		}, options...)
	}})
}

func asConnect(err error) error {
	var already *connect.Error
	switch {
	case errors.As(err, &already):
		return err
	case errors.Is(err, ErrBase), errors.Is(err, ErrJournal):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}

// ErrNoTarget answers a change that does not say where it leads.
var ErrNoTarget = connect.NewError(connect.CodeInvalidArgument, errors.New("target is missing"))

func init() {
	RegisterCall(edgev1connect.EdgeServiceGetStatusProcedure, getStatus)
	RegisterCall(edgev1connect.EdgeServiceApplyConfigProcedure, applyConfig)
	RegisterCall(edgev1connect.EdgeServiceReloadConfigProcedure, reloadConfig)
	RegisterCall(edgev1connect.EdgeServiceListFailingProcedure, listFailing)
}

func getStatus(_ context.Context, c *Core, _ *edgev1.GetStatusRequest) (*edgev1.GetStatusResponse, error) {
	return c.Report(), nil
}

// Report is all that the edge says of itself: what the core knows, and what its components add.
func (c *Core) Report() *edgev1.GetStatusResponse {
	core := c.Status()
	status := &edgev1.GetStatusResponse{
		InstanceId:    c.InstanceID,
		Version:       Version,
		Config:        core.Position,
		Sites:         uint64(core.Sites),
		UptimeSeconds: uint64(time.Since(c.Started).Seconds()),
		Failed:        core.Failed,
		Held:          uint64(core.Lacking),
		Warnings:      core.Warnings,
		Capabilities:  Capabilities(),

		ConfinementProblem: confine.Problem(),
	}
	for _, filler := range Each[statusFiller](c) {
		filler.FillStatus(status)
	}
	return status
}

func applyConfig(_ context.Context, c *Core, r *edgev1.ApplyConfigRequest) (*edgev1.ApplyConfigResponse, error) {
	if r.GetTarget() == nil {
		return nil, ErrNoTarget
	}
	position, failed, err := c.Apply(r.GetBase(), r.GetTarget(), r.GetUpserts(), r.GetDeletes(), r.GetUnserved()...)
	if err != nil {
		return nil, err
	}
	return configResponse(position, failed), nil
}

func reloadConfig(_ context.Context, c *Core, _ *edgev1.ReloadConfigRequest) (*edgev1.ApplyConfigResponse, error) {
	position, failed, err := c.ReloadConfig()
	if err != nil {
		return nil, err
	}
	return configResponse(position, failed), nil
}

func listFailing(_ context.Context, c *Core, r *edgev1.ListFailingRequest) (*edgev1.ListFailingResponse, error) {
	position, entries, more := c.Failing(r.GetAfter())
	return &edgev1.ListFailingResponse{Position: position, Entries: entries, More: more}, nil
}

func configResponse(position *nodev1.ConfigPosition, failed []*nodev1.FailedEntry) *edgev1.ApplyConfigResponse {
	return &edgev1.ApplyConfigResponse{Position: position, Failed: failed}
}
