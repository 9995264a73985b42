package purgemethod

import (
	"context"
	"errors"
	"sync/atomic"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Purger is what a core has of PURGE requests.
type Purger struct {
	// nil until the agent has brought it.
	secret atomic.Pointer[nodev1.PurgeSecret]
	desk   *desk
}

var component = core.NewComponent("PURGE", func(*core.Core) *Purger { return &Purger{desk: newDesk()} })

func init() {
	core.RegisterCall(edgev1connect.EdgeServiceSetPurgeSecretProcedure, setSecret)
	core.RegisterCall(edgev1connect.EdgeServiceAnswerPurgeRequestProcedure, answerRequest)
	core.RegisterStream(edgev1connect.EdgeServiceWatchPurgeRequestsProcedure, watchRequests)
}

const (
	minSecretBytes = 16
	maxSecretBytes = 256
)

var errSecret = errors.New("a purge secret has a version and 16 to 256 bytes")

func setSecret(_ context.Context, c *core.Core, r *edgev1.SetPurgeSecretRequest) (*edgev1.SetPurgeSecretResponse, error) {
	s := r.GetSecret()
	if n := len(s.GetSecret()); s.GetVersion() == 0 || n < minSecretBytes || n > maxSecretBytes {
		return nil, connect.NewError(connect.CodeInvalidArgument, errSecret)
	}
	component.Of(c).secret.Store(s)
	return &edgev1.SetPurgeSecretResponse{}, nil
}

func answerRequest(_ context.Context, c *core.Core, r *edgev1.AnswerPurgeRequestRequest) (*edgev1.AnswerPurgeRequestResponse, error) {
	component.Of(c).desk.answer(r.GetId(), r.GetAnswer())
	return &edgev1.AnswerPurgeRequestResponse{}, nil
}

func watchRequests(ctx context.Context, c *core.Core, _ *edgev1.WatchPurgeRequestsRequest, send func(*edgev1.PurgeRequest) error) error {
	return component.Of(c).desk.watch(ctx, send)
}

// FillStatus says which secret is in use.
func (p *Purger) FillStatus(status *edgev1.GetStatusResponse) {
	status.PurgeSecretVersion = p.secret.Load().GetVersion()
}
