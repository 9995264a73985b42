package acme

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func init() {
	core.RegisterCapability("http01-v1")
	core.RegisterCall(edgev1connect.EdgeServiceSetAcmeTokensProcedure, setTokens)
}

func setTokens(_ context.Context, c *core.Core, r *edgev1.SetAcmeTokensRequest) (*edgev1.SetAcmeTokensResponse, error) {
	if err := Tokens.Of(c).Set(r.GetComplete(), tokensOf(r.GetUpserts()), tokensOf(r.GetRemoved())); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return &edgev1.SetAcmeTokensResponse{}, nil
}

func tokensOf(list []*nodev1.AcmeToken) []Token {
	tokens := make([]Token, len(list))
	for i, t := range list {
		tokens[i] = Token{t.GetHost(), t.GetToken(), t.GetKeyAuthorization(), time.UnixMilli(t.GetExpiresAtMs())}
	}
	return tokens
}
