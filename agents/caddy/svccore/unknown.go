package svccore

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/svccc"
)

// UnknownHosts says what a request for a host of no site gets.
type UnknownHosts struct {
	Host, Address configv1.UnknownHostAction
	DefaultSiteID string
	// Scan is nil while scan protection is off.
	Scan *svccc.Scan
}

var unknownHostPages = &UnknownHosts{
	Host:    configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE,
	Address: configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE,
}

func compileUnknownHosts(_ *Core, id string, body []byte) (apply, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	var message configv1.UnknownHosts
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("body is not an unknown-hosts setting: %w", err)
	}
	next := &UnknownHosts{
		Host: message.GetUnknownHost(), Address: message.GetIpAccess(), DefaultSiteID: message.GetDefaultSiteId(),
	}
	if scan := message.GetScan(); scan.GetEnabled() {
		var r rangeCheck
		next.Scan = &svccc.Scan{
			Threshold: r.number("scan.threshold", scan.GetThreshold(), 10, 10_000),
			Ban:       r.seconds("scan.ban_seconds", scan.GetBanSeconds(), 60, 86_400),
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	for _, action := range []*configv1.UnknownHostAction{&next.Host, &next.Address} {
		switch *action {
		case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_UNSPECIFIED:
			*action = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE
		case configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_PAGE, configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_CLOSE,
			configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE:
		default:
			return nil, fmt.Errorf("unknown-host action %d needs a capability this node lacks", *action)
		}
	}
	return func(e *edit) { e.tables.Unknown = next }, nil
}

func removeUnknownHosts(e *edit, _ string) { e.tables.Unknown = unknownHostPages }
