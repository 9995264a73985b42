package origin

import (
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	machine "edge.svc/caddy/internal/memory"
)

var (
	// policySetting says which addresses origins may have.
	policySetting = exchange.NewSetting("origin-policy", new(AddressPolicy))
	pools         = core.PartOf("site", "origins", compilePart)
	checksOf      = core.PartOf("site", "checks of origins", func(_ *core.Core, siteID string, m *configv1.Site) (*checks, error) {
		return compileChecks(siteID, m)
	})

	states     = core.NewComponent("health of origins", func(*core.Core) *State { return NewState() })
	transports = core.NewComponent("connections to origins", func(c *core.Core) *Transports {
		t := NewTransportSet(func() *AddressPolicy { return policySetting.Of(c.Tables()) })
		if t.capacity.most = maxConnections.Of(c); t.capacity.most == 0 {
			t.capacity.most = max(machine.Connections()/partPerOrigin, 1)
		}
		t.resolver.outage.keep = time.Duration(keepSeconds.Of(c)) * time.Second
		t.resolver.outage.told = func(failing bool) {
			if failing {
				c.Log().Warn("DNS does not respond for host names of origins: their last addresses serve", zap.Int("names", len(t.resolver.failing())))
			} else {
				c.Log().Info("no last addresses of origins serve any more")
			}
		}
		return t
	})

	sharedClients = core.NewComponent("HTTP/2 connections to origins", func(c *core.Core) *Shared { return NewShared(TransportsOf(c)) })

	_ = core.NewComponent("checks of origins", func(c *core.Core) *Checker {
		checker := newChecker(HealthOf(c), TransportsOf(c), c.Tables)
		c.OnChange(checker.look)
		return checker
	})

	// maxConnections is how many connections to one origin may be in use.
	maxConnections = core.NewOption("max_origin_connections", 0, notNegative)

	// keepSeconds is how long last good addresses of origins serve while DNS does not respond.
	keepSeconds = core.NewOption("origin_stale_seconds", int(defaultKeep/time.Second), notNegative)
)

// partPerOrigin is the part of all connections that one origin may have: three others that hang leave room for the rest.
const partPerOrigin = 4

func notNegative(n int) error {
	if n < 0 {
		return errors.New("is negative")
	}
	return nil
}

func init() {
	core.SettingKind("origin-policy", policySetting, CompilePolicy)
	core.ConfigureKind("site", core.KindOptions{Features: []string{"active-health-v1", "origin-http2-v1", "session-affinity-v1"}})
}

// HealthOf returns the health of the origins of a core; it survives changes of their sites.
func HealthOf(c *core.Core) *State { return states.Of(c) }

// TransportsOf returns the connections to origins of a core.
func TransportsOf(c *core.Core) *Transports { return transports.Of(c) }

// PoolOf returns the origins of a site, nil for a disabled one.
func PoolOf(p *exchange.Plan) *Pool { return pools.Of(p) }

// compilePart compiles the pool of a site. A disabled site needs none, so that nothing in it is at fault.
func compilePart(c *core.Core, siteID string, m *configv1.Site) (*Pool, error) {
	if m.GetDisabled() {
		return nil, nil
	}
	p, err := Compile(siteID, m.GetOrigins(), m.GetPool(), HealthOf(c))
	if err == nil {
		p.bodyLimit = int64(min(m.GetRequestBodyLimit(), math.MaxInt64))
	}
	return p, err
}
