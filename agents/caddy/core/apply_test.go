package core

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func TestChangeFromAnotherBaseChangesNothing(t *testing.T) {
	c := newCore(t)
	change(t, c, []*configv1.Entry{siteEntry("a", 1, "a.com")})
	held := c.Status().Position
	wrongHash := proto.CloneOf(held)
	wrongHash.SetHash = []byte("x")
	wrongEpoch := proto.CloneOf(held)
	wrongEpoch.Epoch++
	for _, attempt := range []struct {
		name string
		err  error
	}{
		{"hash", second(c.Apply(wrongHash, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
		{"epoch", second(c.Apply(wrongEpoch, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
		{"nothing", second(c.Apply(nil, edgetest.Position(9), nil, []*configv1.EntryKey{edgetest.Key("site", "a")}))},
	} {
		if !errors.Is(attempt.err, ErrBase) {
			t.Errorf("%s: %v", attempt.name, attempt.err)
		}
	}
	if hostOwner(c, "a.com") != "a" || !proto.Equal(c.Status().Position, held) {
		t.Error("something changed")
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func TestReasonIsBoundedText(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 400), "a\xffb", strings.Repeat("\xff", 600)} {
		reason := reasonText(errors.New(text))
		if len(reason) > maxReasonBytes || strings.ToValidUTF8(reason, "") != reason {
			t.Errorf("%d bytes: %q", len(reason), reason)
		}
	}
}
