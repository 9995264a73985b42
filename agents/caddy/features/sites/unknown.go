// Package sites says what becomes of requests for hosts of no site.
package sites

import (
	"fmt"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
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

// Unknown is the setting of the cluster.
var Unknown = exchange.NewSetting("unknown-hosts", unknownHostPages)

func init() {
	core.SettingKind("unknown-hosts", Unknown, compileUnknownHosts)
	core.ConfigureKind("unknown-hosts", core.KindOptions{Features: []string{"unknown-host-v1"}})
}

// DefaultSite returns the site that answers for unknown hosts, nil when there is none or it is disabled.
func DefaultSite(t *exchange.Tables) *exchange.Plan {
	plan := core.PlanOfSite(t, Unknown.Of(t).DefaultSiteID)
	if plan == nil || plan.Disabled {
		return nil
	}
	return plan
}

func compileUnknownHosts(message *configv1.UnknownHosts) (*UnknownHosts, error) {
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
			return nil, fmt.Errorf("unknown-host action %d needs a capability that this node does not have", *action)
		}
	}
	return next, nil
}

// warner names settings that do not do what they seem to.
type warner struct{ core *core.Core }

var _ = core.NewComponent("unknown hosts", func(c *core.Core) *warner { return &warner{c} })

// FillStatus warns of a site for unknown hosts that is not there.
func (w *warner) FillStatus(status *edgev1.GetStatusResponse) {
	tables := w.core.Tables()
	unknown := Unknown.Of(tables)
	const site = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE
	if (unknown.Host == site || unknown.Address == site) && DefaultSite(tables) == nil {
		status.Warnings = append(status.Warnings, fmt.Sprintf("site %q for unknown hosts is missing or disabled: they get the page", unknown.DefaultSiteID))
	}
}
