package svcapi

import (
	"context"

	"connectrpc.com/connect"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svcchallenge"
)

func (s *service) SetChallengeKeys(_ context.Context, r *connect.Request[edgev1.SetChallengeKeysRequest]) (*connect.Response[edgev1.SetChallengeKeysResponse], error) {
	keys := r.Msg.GetKeys()
	if err := s.core.Challenges.SetKeys(svcchallenge.Keys{
		Version: keys.GetVersion(), Next: challengeKey(keys.GetNext()), Current: challengeKey(keys.GetCurrent()), Previous: challengeKey(keys.GetPrevious()),
	}); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return connect.NewResponse(&edgev1.SetChallengeKeysResponse{}), nil
}

func challengeKey(key *nodev1.ChallengeKey) *svcchallenge.Key {
	if key == nil {
		return nil
	}
	return &svcchallenge.Key{ID: key.GetId(), Secret: key.GetSecret()}
}

func challengeCounters(n svcchallenge.Counters) *edgev1.ChallengeCounters {
	return &edgev1.ChallengeCounters{
		Served: n.Served[:], Passed: n.Passed[:], Failed: n.Failed, Replayed: n.Replayed, Overflowed: n.Overflowed,
		CaptchaFallbacks: n.CaptchaFallbacks, FromElsewhere: n.FromElsewhere,
	}
}
