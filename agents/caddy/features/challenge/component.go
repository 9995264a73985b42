package challenge

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

var (
	// Memory at most for answered challenges, in MiB. The default is enough for 8,000 answers a second.
	replayMiB = core.NewOption("challenge_replay_mib", DefaultReplayBytes>>20, func(n int) error {
		if n < 1 {
			return fmt.Errorf("is %d and must be positive", n)
		}
		return nil
	})
	component = core.NewComponent("challenges", func(c *core.Core) *Challenges {
		return New(Options{ReplayBytes: replayMiB.Of(c) << 20, Now: c.Now})
	})
)

func init() {
	core.RegisterCall(edgev1connect.EdgeServiceSetChallengeKeysProcedure, setChallengeKeys)
}

// Of returns the challenges of a core.
func Of(c *core.Core) *Challenges { return component.Of(c) }

// FillStatus says which keys are in use, and counts challenges.
func (c *Challenges) FillStatus(status *edgev1.GetStatusResponse) {
	status.ChallengeKeysVersion = c.KeysVersion()
	n := c.Counters()
	status.Challenges = &edgev1.ChallengeCounters{
		Served: n.Served[:], Passed: n.Passed[:], Failed: n.Failed, Replayed: n.Replayed, Overflowed: n.Overflowed,
		CaptchaFallbacks: n.CaptchaFallbacks, FromElsewhere: n.FromElsewhere,
	}
}

func setChallengeKeys(_ context.Context, c *core.Core, r *edgev1.SetChallengeKeysRequest) (*edgev1.SetChallengeKeysResponse, error) {
	keys := r.GetKeys()
	if err := Of(c).SetKeys(Keys{
		Version: keys.GetVersion(), Next: keyOf(keys.GetNext()), Current: keyOf(keys.GetCurrent()), Previous: keyOf(keys.GetPrevious()),
	}); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return &edgev1.SetChallengeKeysResponse{}, nil
}

func keyOf(key *nodev1.ChallengeKey) *Key {
	if key == nil {
		return nil
	}
	return &Key{ID: key.GetId(), Secret: key.GetSecret()}
}
