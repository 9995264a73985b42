package svccore

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// UnknownHosts says what a request for a host of no site gets.
type UnknownHosts struct {
	Host, Address configv1.UnknownHostAction
	DefaultSiteID string
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
