package requestlog

import (
	"errors"
	"net/http"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

const (
	kind       = "site-logs"
	maxHeaders = 8
	maxName    = 64
)

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"access-logs-v1"}, MaxBody: 4 << 10})
}

// settings are those of a site, immutable.
type settings struct {
	rate                 uint32
	blocked, query, peer bool
	headers              []header
}

// header is one that is logged: its name as rows have it, and as headers of requests do.
type header struct{ name, canonical string }

var (
	errHeaders = errors.New("headers has more than 8 names, or one that is never logged")

	part = core.PartOf(kind, "request logs", compile)
	// Its presence says that the site wants fingerprints in its rows.
	ja4 = core.PartOf("protection", "fingerprints in request logs", func(_ *core.Core, _ string, m *configv1.SiteProtection) (*struct{ _ byte }, error) {
		if !m.GetLogJa4() {
			return nil, nil
		}
		return new(struct{ _ byte }), nil
	})
)

// Of every site that logs whatever its settings say.
var none = &settings{}

func compile(_ *core.Core, _ string, m *configv1.SiteLogs) (*settings, error) {
	var check ranges.Check
	s := &settings{blocked: m.GetLogBlocked(), query: m.GetLogQuery(), peer: m.GetLogPeer()}
	s.rate = check.Number("sample_rate", m.GetSampleRate(), 0, exchange.SampleParts)
	if check.Err != nil {
		return nil, check.Err
	}
	if len(m.GetHeaders()) > maxHeaders {
		return nil, errHeaders
	}
	for _, name := range m.GetHeaders() {
		name = strings.ToLower(name)
		switch name {
		case "", "authorization", "cookie", "proxy-authorization":
			return nil, errHeaders
		}
		if len(name) > maxName {
			return nil, errHeaders
		}
		s.headers = append(s.headers, header{strings.Clone(name), http.CanonicalHeaderKey(name)})
	}
	return s, nil
}
