package api

import (
	"testing"

	"connectrpc.com/connect"

	_ "edge.svc/caddy/features/challenge"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func TestChallengeKeysAreTakenWholeOrNotAtAll(t *testing.T) {
	c := client(serve(t), false)
	version := func() uint64 {
		t.Helper()
		status, err := c.GetStatus(t.Context(), connect.NewRequest(&edgev1.GetStatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if n := status.Msg.GetChallenges(); len(n.GetServed()) != 4 || len(n.GetPassed()) != 4 {
			t.Errorf("%v", n)
		}
		return status.Msg.GetChallengeKeysVersion()
	}
	set := func(keys *nodev1.ChallengeKeys) error {
		_, err := c.SetChallengeKeys(t.Context(), connect.NewRequest(&edgev1.SetChallengeKeysRequest{Keys: keys}))
		return err
	}
	good := &nodev1.ChallengeKey{Id: "k1", Secret: make([]byte, 32)}
	if version() != 0 {
		t.Error("keys out of nowhere")
	}
	if err := set(&nodev1.ChallengeKeys{Version: 3, Current: good, Next: &nodev1.ChallengeKey{Id: "k2", Secret: make([]byte, 32)}}); err != nil || version() != 3 {
		t.Errorf("%v %d", err, version())
	}
	for name, keys := range map[string]*nodev1.ChallengeKeys{
		"no current key":     {Version: 4, Next: good},
		"a short secret":     {Version: 4, Current: &nodev1.ChallengeKey{Id: "k1", Secret: make([]byte, 15)}},
		"a bad id":           {Version: 4, Current: &nodev1.ChallengeKey{Id: "k 1", Secret: make([]byte, 32)}},
		"a key in two roles": {Version: 4, Current: good, Previous: good},
	} {
		if err := set(keys); connect.CodeOf(err) != connect.CodeInvalidArgument || version() != 3 {
			t.Errorf("%s: %v %d", name, err, version())
		}
	}
	if err := set(nil); err != nil || version() != 0 {
		t.Errorf("%v %d", err, version())
	}
}
