package program_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/bans"
	"edge.svc/caddy/features/challenge"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

const keysOfCluster = `{"clusterId":"cluster","version":"7","keys":{"current":{"id":"k1","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}}`

func ownBan(cidr string) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Security{Security: &edgev1.SecurityBatch{
		Bans: []*nodev1.OwnBan{{Cidr: cidr, ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli()}},
	}}}
}

func headerOf(cluster string) *edgev1.JournalRecord {
	header := edgetest.Header("node")
	header.GetHeader().ClusterId = cluster
	return header
}

// Own bans and challenge keys are there before anybody drives the core. Files of another cluster are not used, nor what
// comes after damage.
func TestACoreContinuesWhatAFormerOneHeld(t *testing.T) {
	config := edgetest.Encode(edgetest.Header("node"), edgetest.Config(1, []*configv1.Entry{live.OriginPolicy()}))
	whole := edgetest.Encode(edgetest.Header("node"), ownBan("192.0.2.1/32"), ownBan("192.0.2.2/32"))
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)-1] ^= 1
	for name, test := range map[string]struct {
		config, security []byte
		keys             string
		bans             uint64
		version          uint64
	}{
		"nothing":                  {},
		"both":                     {config: config, security: whole, keys: keysOfCluster, bans: 2, version: 7},
		"no configuration yet":     {security: whole, keys: keysOfCluster, bans: 2, version: 7},
		"another cluster's":        {config: edgetest.Encode(headerOf("other")), security: whole, keys: keysOfCluster},
		"torn":                     {config: config, security: whole[:len(whole)-3], bans: 1},
		"damaged":                  {config: config, security: append(damaged, whole...), bans: 1},
		"keys that make no sense":  {config: config, security: whole, keys: "{", bans: 2},
		"keys without current one": {config: config, keys: `{"clusterId":"cluster","version":"7","keys":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string][]byte{"config.journal": test.config, "security.journal": test.security, "challenge-keys.json": []byte(test.keys)} {
				if len(content) > 0 {
					if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			c := core.New(core.Options{StateDir: dir})
			if got := bans.Of(c).State().GetEntries(); got != test.bans {
				t.Errorf("%d bans, want %d", got, test.bans)
			}
			if _, banned := bans.Of(c).Lookup("", netip.MustParseAddr("192.0.2.1")); banned != (test.bans > 0) {
				t.Errorf("banned: %v", banned)
			}
			if got := challenge.Of(c).KeysVersion(); got != test.version {
				t.Errorf("keys %d, want %d", got, test.version)
			}
			// The agent reports and repairs these files itself.
			if warnings := c.Status().Warnings; len(warnings) > 0 {
				t.Errorf("%q", warnings)
			}
		})
	}
}
