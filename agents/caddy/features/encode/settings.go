package encode

import (
	"errors"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

const (
	kind = "site-compression"

	maxTypes     = 32
	maxTypeBytes = 255
	maxMinLength = 1 << 20

	// What compresses best for its time, where gzip has no level.
	gzipLevel        = 1
	defaultMinLength = 256
)

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"compression-v1", "brotli-v1", "zstd-v1"}, MaxBody: 64 << 10})
}

var part = core.PartOf(kind, "compression", compile)

// settings are those of a site, immutable.
type settings struct {
	// By coding, nil for one that is off.
	codings [exchange.Gzip + 1]*codingSettings
	// Bytes of the longest answer that is compressed, 0 for any.
	maxLength uint64
}

type codingSettings struct {
	level     int
	minLength uint64
	types     map[string]bool
}

// preset is what holds for sites that set nothing.
var preset = &settings{codings: [exchange.Gzip + 1]*codingSettings{
	exchange.Gzip: {level: gzipLevel, minLength: defaultMinLength, types: typesOf([]string{
		"text/plain", "text/css", "application/javascript", "application/json", "image/svg+xml",
	})},
}}

// of are the settings of the site of an exchange.
func of(x *exchange.Exchange) *settings {
	if s := part.Of(x.Plan); s != nil {
		return s
	}
	return preset
}

// any reports whether answers of the site are compressed at all.
func (s *settings) any() bool {
	for _, c := range s.codings {
		if c != nil {
			return true
		}
	}
	return false
}

// typesOf makes a set of media types. HTML is always in it.
func typesOf(list []string) map[string]bool {
	types := map[string]bool{"text/html": true}
	for _, name := range list {
		types[sameType(mediaType(name))] = true
	}
	return types
}

// sameType gives the two names that RFC 9239 has for JavaScript one.
func sameType(name string) string {
	if name == "application/javascript" {
		return "text/javascript"
	}
	return name
}

func compile(_ *core.Core, _ string, m *configv1.SiteCompression) (*settings, error) {
	s := &settings{maxLength: m.GetMaxLength()}
	var err error
	for _, c := range []struct {
		coding exchange.Coding
		field  string
		from   *configv1.CodingSettings
		least  uint32
		most   uint32
	}{
		{exchange.Gzip, "gzip", m.GetGzip(), 0, 9},
		{exchange.Brotli, "brotli", m.GetBrotli(), 1, 11},
		{exchange.Zstd, "zstd", m.GetZstd(), 1, 19},
	} {
		if c.from.GetEnabled() && err == nil {
			s.codings[c.coding], err = compileCoding(c.field, c.from, c.least, c.most)
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

var errTypes = errors.New("types has more than 32 entries, or one that is not a media type")

func compileCoding(field string, m *configv1.CodingSettings, least, most uint32) (*codingSettings, error) {
	var check ranges.Check
	level := int(check.Number(field+".level", m.GetLevel(), least, most))
	minLength := uint64(check.Number(field+".min_length", m.GetMinLength(), 1, maxMinLength))
	if check.Err != nil {
		return nil, check.Err
	}
	if len(m.GetTypes()) > maxTypes {
		return nil, errTypes
	}
	for _, name := range m.GetTypes() {
		if main, sub, _ := strings.Cut(name, "/"); main == "" || sub == "" || len(name) > maxTypeBytes || !strings.EqualFold(mediaType(name), name) {
			return nil, errTypes
		}
	}
	if level == 0 {
		level = gzipLevel
	}
	return &codingSettings{level, minLength, typesOf(m.GetTypes())}, nil
}
