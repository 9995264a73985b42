package svccore

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svcorigin"
)

// kind is what the edge does with the entries of a kind. Compiling decodes and checks, and changes nothing.
type kind struct {
	compile func(c *Core, id string, body []byte) (apply, error)
	remove  func(e *edit, id string)
}

// kinds lists every kind of entry this node understands; a new one is a file with its two functions and a line here.
var kinds = map[string]kind{
	"site":                {compileSite, removeSite},
	"client-ip":           {compileClientIP, removeClientIP},
	"unknown-hosts":       {compileUnknownHosts, removeUnknownHosts},
	"origin-policy":       {compileOriginPolicy, removeOriginPolicy},
	"ip-list":             {compileIPList, removeIPList},
	"ip-list-chunk":       {compileIPListChunk, removeIPListChunk},
	"protection":          {compileProtection, removeProtection},
	"platform-protection": {compilePlatformProtection, removePlatformProtection},
	"cc-template":         {compileCCTemplate, removeCCTemplate},
	"challenge-keys":      {compileChallengeKeys, removeChallengeKeys},
}

// Capabilities an entry may ask for, as the agent reports them to the console.
var capabilities = []string{"bans-v1", "challenge-v1", "client-ip-v1", "domains-v2", "kernel-ban-v1", "metrics-v1", "unknown-host-v1"}

var errOnlyOne = errors.New("a cluster has one entry of this kind, without an id")

// compileEntry decodes and checks one entry.
func compileEntry(c *Core, entry *configv1.Entry) (apply, error) {
	k, ok := kinds[entry.GetKind()]
	if !ok {
		return nil, fmt.Errorf("entries of kind %q need a capability this node lacks", entry.GetKind())
	}
	for _, feature := range entry.GetFeatures() {
		if !slices.Contains(capabilities, feature) {
			return nil, fmt.Errorf("the entry needs capability %q, which this node lacks", feature)
		}
	}
	return k.compile(c, entry.GetId(), entry.GetBody())
}

var defaultPolicy = mustPolicy()

func mustPolicy() *svcorigin.AddressPolicy {
	policy, err := svcorigin.CompilePolicy(&configv1.OriginPolicy{})
	if err != nil {
		panic(err)
	}
	return policy
}

func compileOriginPolicy(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	var message configv1.OriginPolicy
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not an origin policy: %w", err)
	}
	policy, err := svcorigin.CompilePolicy(&message)
	if err != nil {
		return nil, err
	}
	return func(e *edit) { e.tables.Policy = policy }, nil
}

func removeOriginPolicy(e *edit, _ string) { e.tables.Policy = defaultPolicy }
