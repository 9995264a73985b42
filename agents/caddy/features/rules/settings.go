package rules

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

const maxBodyLimit = 10 << 30

var (
	errBodyLimit = errors.New("request_body_limit must be at most 10737418240")
	errCacheOnly = errors.New("the action sets a field that the phase cache cannot set")
)

// config overrides settings. Of several rules the later one wins, setting by setting.
func (c *compiler) config(m *configv1.ConfigAction) (action, error) {
	var changes, exemptions []func(*exchange.Overrides)
	turn := func(on *bool, of func(*exchange.Overrides) *exchange.Switch) {
		if on != nil {
			to := exchange.SwitchOf(*on)
			changes = append(changes, func(o *exchange.Overrides) { *of(o) = to })
		}
	}
	protect := func(on *bool, of func(*exchange.Overrides) *exchange.Switch) {
		if on != nil && !*on {
			exemptions = append(exemptions, func(o *exchange.Overrides) { *of(o) = exchange.Off })
		} else {
			turn(on, of)
		}
	}
	turn(m.CacheBypass, func(o *exchange.Overrides) *exchange.Switch { return &o.CacheBypass })
	turn(m.ForceHttps, func(o *exchange.Overrides) *exchange.Switch { return &o.ForceHTTPS })
	turn(m.Gzip, func(o *exchange.Overrides) *exchange.Switch { return &o.Gzip })
	var check ranges.Check
	if m.RequestBodyLimit != nil {
		most := m.GetRequestBodyLimit()
		if most > maxBodyLimit {
			check.Err = errBodyLimit
		}
		changes = append(changes, func(o *exchange.Overrides) { o.BodyLimit, o.HasBodyLimit = most, true })
	}
	early := len(changes)
	turn(m.Brotli, func(o *exchange.Overrides) *exchange.Switch { return &o.Brotli })
	turn(m.Zstd, func(o *exchange.Overrides) *exchange.Switch { return &o.Zstd })
	turn(m.Websocket, func(o *exchange.Overrides) *exchange.Switch { return &o.WebSocket })
	protect(m.UnderAttack, func(o *exchange.Overrides) *exchange.Switch { return &o.UnderAttack })
	protect(m.CcEnabled, func(o *exchange.Overrides) *exchange.Switch { return &o.CC })
	if m.CcMaxLevel != nil {
		level := check.Level("cc_max_level", m.GetCcMaxLevel(), exchange.Normal)
		if level == exchange.Normal && check.Err == nil {
			check.Err = errNoValue
		}
		exemptions = append(exemptions, func(o *exchange.Overrides) { o.CCMaxLevel = level })
	}
	pause := func(field string, ms *uint32, most uint32, of func(*exchange.Overrides) *time.Duration) {
		if ms != nil {
			d := time.Duration(check.Number(field, *ms, 100, most)) * time.Millisecond
			changes = append(changes, func(o *exchange.Overrides) { *of(o) = d })
		}
	}
	pause("origin_connect_timeout_ms", m.OriginConnectTimeoutMs, 120_000, func(o *exchange.Overrides) *time.Duration { return &o.ConnectTimeout })
	pause("origin_send_timeout_ms", m.OriginSendTimeoutMs, 3_600_000, func(o *exchange.Overrides) *time.Duration { return &o.SendTimeout })
	pause("origin_read_timeout_ms", m.OriginReadTimeoutMs, 3_600_000, func(o *exchange.Overrides) *time.Duration { return &o.ReadTimeout })
	if m.LogSampleRate != nil {
		rate := check.Number("log_sample_rate", m.GetLogSampleRate(), 0, 10_000)
		changes = append(changes, func(o *exchange.Overrides) { o.LogSampleRate, o.HasLogSampleRate = rate, true })
	}
	switch {
	case check.Err != nil:
		return nil, check.Err
	case len(changes)+len(exemptions) == 0:
		return nil, errNothing
	case c.phase == cache && len(changes)+len(exemptions) > early:
		return nil, errCacheOnly
	}
	spelled := c.spelled
	return func(q *request, r *rule) verdict {
		if len(exemptions) > 0 && spelled.plain(q) {
			for _, exempt := range exemptions {
				exempt(&q.x.Overrides)
			}
		} else if len(changes) == 0 {
			return goOn
		}
		for _, change := range changes {
			change(&q.x.Overrides)
		}
		return q.applied(r)
	}, nil
}

var (
	errHost = errors.New("host_header or sni is not a valid host name")
	errPort = errors.New("port must be at most 65535")
)

const maxGroup = 64

// origin changes which origins are asked and as what. Of several rules the later one wins, field by field.
func (c *compiler) origin(m *configv1.OriginAction) (action, error) {
	group, host, sni := m.GetGroup(), m.GetHostHeader(), m.GetSni()
	if len(group) > maxGroup || group != "" && c.platform {
		return nil, errValue
	}
	if len(host) > maxHostHeader || !httpguts.ValidHostHeader(host) {
		return nil, errHost
	}
	if name, kind := core.NormalizeHost(sni); sni != "" && (kind != core.HostName || name != sni) {
		return nil, errHost
	}
	if m.GetPort() > 65_535 {
		return nil, errPort
	}
	port := uint16(m.GetPort())
	if group == "" && host == "" && sni == "" && port == 0 {
		return nil, errNothing
	}
	return func(q *request, r *rule) verdict {
		out := &q.x.Out
		if group != "" {
			out.Group = group
		}
		if host != "" {
			out.HostHeader = host
		}
		if sni != "" {
			out.SNI = sni
		}
		if port != 0 {
			out.Port = port
		}
		return q.applied(r)
	}, nil
}

// A name and a port.
const maxHostHeader = 253 + len(":65535")

var codings = map[configv1.Coding]exchange.Coding{
	configv1.Coding_CODING_ZSTD: exchange.Zstd, configv1.Coding_CODING_BR: exchange.Brotli, configv1.Coding_CODING_GZIP: exchange.Gzip,
}

// compression says which codings an answer may have. A later rule takes the place of an earlier one.
func (c *compiler) compression(m *configv1.CompressionAction) (action, error) {
	list := make([]exchange.Coding, 0, len(codings))
	for _, coding := range m.GetCodings() {
		known := codings[coding]
		if known == 0 || slices.Contains(list, known) {
			return nil, errUnknown
		}
		list = append(list, known)
	}
	return func(q *request, r *rule) verdict {
		q.x.Overrides.Codings, q.x.Overrides.HasCodings = list, true
		return q.applied(r)
	}, nil
}
