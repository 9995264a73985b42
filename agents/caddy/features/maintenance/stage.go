package maintenance

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/pages"
)

const (
	kind          = "site-maintenance"
	maxNetworks   = 64
	maxPrefixes   = 32
	maxPrefixSize = 1024
	maxRetryAfter = 86_400
)

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"error-pages-v1"}, MaxBody: 128 << 10})
}

// settings are those of a site in maintenance.
type settings struct {
	// nil: the page of the edge.
	template *pages.Template
	// Value of Retry-After; nil for none.
	retryAfter []string
	networks   []netip.Prefix
	// Percent-encoded.
	prefixes []string
}

var part = core.PartOf(kind, "maintenance", func(_ *core.Core, _ string, m *configv1.SiteMaintenance) (*settings, error) {
	if len(m.GetTemplate()) > pages.MaxTemplateBytes || !utf8.ValidString(m.GetTemplate()) {
		return nil, fmt.Errorf("a template is UTF-8 of at most %d bytes", pages.MaxTemplateBytes)
	}
	if m.GetRetryAfterSeconds() > maxRetryAfter || len(m.GetAllowedCidrs()) > maxNetworks || len(m.GetAllowedPathPrefixes()) > maxPrefixes {
		return nil, fmt.Errorf("at most %d seconds, %d networks and %d paths", maxRetryAfter, maxNetworks, maxPrefixes)
	}
	s := new(settings)
	if m.GetTemplate() != "" {
		s.template = pages.ParseTemplate(m.GetTemplate())
	}
	if seconds := m.GetRetryAfterSeconds(); seconds > 0 {
		s.retryAfter = []string{strconv.FormatUint(uint64(seconds), 10)}
	}
	for _, text := range m.GetAllowedCidrs() {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		s.networks = append(s.networks, network.Masked())
	}
	for _, prefix := range m.GetAllowedPathPrefixes() {
		if !strings.HasPrefix(prefix, "/") || len(prefix) > maxPrefixSize {
			return nil, fmt.Errorf("%q is no beginning of a path", prefix)
		}
		s.prefixes = append(s.prefixes, encoded(prefix))
	}
	return s, nil
})

// Stage answers for sites in maintenance.
func Stage(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		s := part.Of(x.Plan)
		if s == nil || s.exempts(x) {
			return nil
		}
		a := pages.Respond(x, http.StatusServiceUnavailable, pages.Maintenance)
		if s.retryAfter != nil {
			a.Header["Retry-After"] = s.retryAfter
		}
		if s.template != nil {
			s.template.Put(x, a, a.Status)
		}
		return a
	}
}

func (s *settings) exempts(x *exchange.Exchange) bool {
	if validation, _ := exchange.Validation.Known(x); validation {
		return true
	}
	if !x.In.Claimed {
		for _, network := range s.networks {
			if network.Contains(x.In.Client) {
				return true
			}
		}
	}
	if len(s.prefixes) == 0 {
		return false
	}
	t := &x.In.Target
	// Visitors of an exempt path may meet a challenge.
	if t.Reserved() {
		return true
	}
	if !t.Plain() {
		return false
	}
	var room [256]byte
	path := exchange.AppendEncoded(room[:0], t.Canonical, stands)
	for _, prefix := range s.prefixes {
		if bytes.HasPrefix(path, []byte(prefix)) {
			return true
		}
	}
	return false
}

// encoded is a beginning of a path as requests are compared with it: what is not encoded yet is.
func encoded(prefix string) string {
	b := make([]byte, 0, len(prefix))
	for i := 0; i < len(prefix); i++ {
		if prefix[i] == '%' && i+2 < len(prefix) && isHex(prefix[i+1]) && isHex(prefix[i+2]) {
			c, _ := strconv.ParseUint(prefix[i+1:i+3], 16, 8)
			b = exchange.AppendEncoded(b, string([]byte{byte(c)}), func(c byte) bool { return stands(c) && c != '/' })
			i += len("2f")
			continue
		}
		b = exchange.AppendEncoded(b, prefix[i:i+1], stands)
	}
	return string(b)
}

// stands names the bytes of a path that are not encoded (RFC 3986, section 3.3).
func stands(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
