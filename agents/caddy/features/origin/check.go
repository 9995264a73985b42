package origin

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// checkKey is what a check asks, how it judges the response, and when it asks. Origins with equal keys share one check:
// none of them can learn from another's response what its own would not have been.
type checkKey struct {
	dial              dialKey
	http2             bool
	host, path        string
	head              bool
	lowest, highest   int
	interval, timeout time.Duration
	thresholds        thresholds
}

// thresholds are how many checks in a row make an origin healthy, or unhealthy.
type thresholds struct{ healthy, unhealthy uint32 }

// checked is an origin of a site that is checked.
type checked struct {
	key    checkKey
	health originKey
}

// checks are those of one site.
type checks struct{ list []checked }

// compileChecks lists what is to be checked of a site, nil where that is nothing.
func compileChecks(siteID string, m *configv1.Site) (*checks, error) {
	settings := m.GetPool().GetActiveHealthCheck()
	if m.GetDisabled() || settings == nil {
		return nil, nil
	}
	base, err := compileCheck(settings)
	if err != nil {
		return nil, fmt.Errorf("active health check: %w", err)
	}
	found := &checks{list: make([]checked, 0, len(m.GetOrigins()))}
	for _, o := range m.GetOrigins() {
		compiled, err := compileOrigin(siteID, o, m.GetPool().GetTlsVerify())
		if err != nil {
			return nil, fmt.Errorf("origin %s: %w", o.GetId(), err)
		}
		key := base
		key.dial, key.http2 = compiled.dial, m.GetPool().GetHttp2()
		key.host = cmp.Or(base.host, compiled.hostHeader, authorityOf(compiled.dial))
		found.list = append(found.list, checked{key, compiled.health})
	}
	return found, nil
}

func compileCheck(m *configv1.ActiveHealthCheck) (checkKey, error) {
	key := checkKey{
		host: m.GetHost(), path: m.GetPath(), head: m.GetHead(),
		lowest: int(m.GetExpectedStatusMin()), highest: int(m.GetExpectedStatusMax()),
		interval:   time.Duration(m.GetIntervalSeconds()) * time.Second,
		timeout:    time.Duration(m.GetTimeoutSeconds()) * time.Second,
		thresholds: thresholds{max(m.GetHealthyThreshold(), 1), max(m.GetUnhealthyThreshold(), 1)},
	}
	switch {
	case !strings.HasPrefix(key.path, "/") || strings.ContainsFunc(key.path, isNotTargetByte):
		return key, errors.New("the path is not valid")
	case !httpguts.ValidHostHeader(key.host) || strings.ContainsAny(key.host, "/\\"):
		return key, errors.New("the host is not valid")
	case key.interval < time.Second || key.timeout <= 0 || key.timeout > key.interval:
		return key, errors.New("the timeout is not between 1 s and the interval")
	}
	return key, nil
}

func isNotTargetByte(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }

// authorityOf is the host of an origin that has no host header of its own.
func authorityOf(k dialKey) string {
	host := k.host.Value()
	usual := uint16(80)
	if k.tls != plain {
		usual = 443
	}
	if k.port != usual {
		return net.JoinHostPort(host, strconv.Itoa(int(k.port)))
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		return "[" + host + "]"
	}
	return host
}

// verdict is what the checks of an origin amount to. It starts healthy.
//
//	state     | trigger                                  | next
//	healthy   | `unhealthy` failed checks in a row       | unhealthy
//	unhealthy | `healthy` passed checks in a row         | healthy
type verdict struct {
	unhealthy bool
	// In a row, of the kind of the latest.
	passed, failed uint32
}

// add takes the result of one check, and reports whether that changed what the origin is.
func (v *verdict) add(passed bool, t thresholds) (changed bool) {
	was := v.unhealthy
	if passed {
		v.passed, v.failed = min(v.passed+1, t.healthy), 0
		v.unhealthy = v.unhealthy && v.passed < t.healthy
	} else {
		v.passed, v.failed = 0, min(v.failed+1, 1<<20)
		v.unhealthy = v.unhealthy || v.failed >= t.unhealthy
	}
	return v.unhealthy != was
}
