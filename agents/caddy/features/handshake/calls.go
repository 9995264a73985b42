package handshake

import (
	"context"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func init() {
	core.RegisterCall(edgev1connect.EdgeServiceReadCertificatesProcedure, readCertificates)
}

func readCertificates(_ context.Context, c *core.Core, _ *edgev1.ReadCertificatesRequest) (*edgev1.ApplyConfigResponse, error) {
	position, failed := Read(c)
	return &edgev1.ApplyConfigResponse{Position: position, Failed: failed}, nil
}

// Read takes over what the agent added to the pack, and tries entries again that failed for want of it. It returns what
// fails now.
func Read(c *core.Core) (*nodev1.ConfigPosition, []*nodev1.FailedEntry) {
	terminators.Of(c).readPack()
	return c.Retry(kind)
}
