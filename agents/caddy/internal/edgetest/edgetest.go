// Package edgetest builds what the agent writes, for tests: entries, and journals on disk.
package edgetest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Header is the header record of a journal.
func Header(nodeID string) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Header{Header: &edgev1.JournalHeader{
		Format: 1, NodeId: nodeID, ClusterId: "cluster",
	}}}
}

// Config is a record that changes the configuration and reaches a revision.
func Config(revision uint64, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Config{Config: &edgev1.ConfigChange{
		Position: Position(revision), Upserts: upserts, Deletes: deletes,
	}}}
}

// Bans is a record that changes the bans and reaches a sequence.
func Bans(sequence uint64, upserts []*nodev1.Ban, removed ...string) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Bans{Bans: &edgev1.BanChange{
		Position: BanPosition(sequence), Upserts: upserts, RemovedIds: removed,
	}}}
}

// Position is a revision of epoch 1 with what the console proves it by.
func Position(revision uint64) *nodev1.ConfigPosition {
	return &nodev1.ConfigPosition{
		Epoch: 1, Track: nodev1.Track_TRACK_STABLE, Revision: revision, SetHash: bytes.Repeat([]byte{byte(revision)}, 32), Mark: mark(revision),
	}
}

// BanPosition is a place of epoch 1 in the feed of bans with what the console proves it by.
func BanPosition(sequence uint64) *nodev1.BanPosition {
	return &nodev1.BanPosition{Epoch: 1, Sequence: sequence, Mark: mark(sequence)}
}

func mark(number uint64) []byte { return bytes.Repeat([]byte{^byte(number)}, 16) }

// Entry encodes the body of an entry.
func Entry(kind, id string, body proto.Message) *configv1.Entry {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &configv1.Entry{Kind: kind, Id: id, Body: encoded}
}

// Key names an entry.
func Key(kind, id string) *configv1.EntryKey { return &configv1.EntryKey{Kind: kind, Id: id} }

// Domain reads a domain as people write it: a.com, *.a.com, .a.com or ~expression.
func Domain(text string) *configv1.Domain {
	switch {
	case text[0] == '~':
		return &configv1.Domain{Form: configv1.DomainForm_DOMAIN_FORM_PATTERN, Name: text[1:]}
	case text[0] == '.':
		return &configv1.Domain{Form: configv1.DomainForm_DOMAIN_FORM_SUFFIX, Name: text[1:]}
	case text[0] == '*':
		return &configv1.Domain{Form: configv1.DomainForm_DOMAIN_FORM_WILDCARD, Name: text[2:]}
	}
	return &configv1.Domain{Form: configv1.DomainForm_DOMAIN_FORM_EXACT, Name: text}
}

// Site is a site with one origin, on port 9 of the loopback address when port is 0.
func Site(port uint32, domains ...string) *configv1.Site {
	if port == 0 {
		port = 9
	}
	site := &configv1.Site{
		Origins: []*configv1.Origin{{Id: "origin", Address: "127.0.0.1", Port: port, Weight: 1}},
		Pool: &configv1.OriginPool{
			Policy: configv1.BalancePolicy_BALANCE_POLICY_WEIGHTED_RANDOM, TlsVerify: true, Websocket: true, Keepalive: true,
			MaxFails: 3, RecoverySeconds: 30, Tries: 3, StatusRetry: true,
			ConnectTimeoutMs: 10_000, SendTimeoutMs: 60_000, ReadTimeoutMs: 60_000,
			KeepaliveIdleSeconds: 60, KeepaliveMaxRequests: 1000,
		},
	}
	for _, text := range domains {
		site.Domains = append(site.Domains, Domain(text))
	}
	return site
}

// Encode frames records as a journal has them.
func Encode(records ...*edgev1.JournalRecord) []byte {
	var out []byte
	for _, record := range records {
		payload, err := proto.Marshal(record)
		if err != nil {
			panic(err)
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)))
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
		out = append(out, payload...)
	}
	return out
}

// WriteJournal writes a journal.
func WriteJournal(t testing.TB, path string, records ...*edgev1.JournalRecord) {
	t.Helper()
	if err := os.WriteFile(path, Encode(records...), 0o600); err != nil {
		t.Fatal(err)
	}
}
