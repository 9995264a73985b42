package svctls

import (
	"context"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	"edge.svc/caddy/svccore"
)

func init() {
	svccore.RegisterCall(edgev1connect.EdgeServiceReadCertificatesProcedure, readCertificates)
}

// readCertificates takes over what the agent added to the pack, and tries entries again that failed for want of it.
func readCertificates(_ context.Context, c *svccore.Core, _ *edgev1.ReadCertificatesRequest) (*edgev1.ApplyConfigResponse, error) {
	terminators.Of(c).readPack()
	position, failed := c.Retry(kind)
	return &edgev1.ApplyConfigResponse{Position: position, Failed: failed}, nil
}
