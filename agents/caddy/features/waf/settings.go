package waf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/features/waf/bodies"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ranges"
)

const (
	kind = "site-waf"

	maxParanoia         = 4
	maxThreshold        = 1000
	maxBodyLimit        = 128 << 20
	maxExcludedRules    = 200
	maxExcludedFamilies = 20
	firstRule, lastRule = 900_000, 999_999
	rulesInFamily       = 1000
	maxMethods          = 32
	maxContentTypes     = 64
	maxCharsets         = 32
)

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"modsecurity-v1", "waf-exclusions-v1", "waf-exceptions-v1"}, MaxBody: 512 << 10})
}

var part = core.PartOf(kind, "waf", compile)

// settings are those of a site whose requests are inspected, immutable.
type settings struct {
	block     bool
	threshold int
	bodyLimit int64
	// values says that events tell what matched, masked.
	values bool
	// exact says that rules have no exceptions.
	exact bool
	// id stands for all that follows from the settings, in keys of verdicts.
	id [sha256.Size]byte

	paranoia   []string
	limit      []string
	methods    []string
	types      []string
	charsets   []string
	rules      []int
	families   []int
	exclusions []exclusion
}

// What sites take that say nothing else. The rule set's own lists refuse much of what pages and programs send.
var (
	defaultMethods = []string{"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"}
	defaultTypes   = []string{
		"application/x-www-form-urlencoded", "multipart/form-data", "multipart/related",
		"text/xml", "application/xml", "application/soap+xml", "application/json", "text/plain",
		"application/cloudevents+json", "application/cloudevents-batch+json", "application/csp-report", "application/reports+json",
		"application/graphql", "application/graphql+json", "application/graphql-response+json", "application/ld+json",
		"application/merge-patch+json", "application/json-patch+json", "application/vnd.api+json", "application/problem+json",
		"application/x-ndjson", "application/octet-stream",
	}
	defaultCharsets = []string{"utf-8", "iso-8859-1", "iso-8859-15", "windows-1252", "gbk", "gb2312", "gb18030", "big5"}
)

// compile returns nil where requests are not inspected.
func compile(c *core.Core, site string, m *configv1.SiteWaf) (*settings, error) {
	switch m.GetMode() {
	case configv1.WafMode_WAF_MODE_OFF:
		return nil, nil
	case configv1.WafMode_WAF_MODE_DETECT, configv1.WafMode_WAF_MODE_BLOCK:
	default:
		return nil, fmt.Errorf("mode %d needs a capability that this node does not have", m.GetMode())
	}
	var check ranges.Check
	paranoia := check.Number("paranoia_level", m.GetParanoiaLevel(), 1, maxParanoia)
	threshold := check.Number("anomaly_threshold", m.GetAnomalyThreshold(), 1, maxThreshold)
	limit := check.Number("request_body_limit", m.GetRequestBodyLimit(), 0, maxBodyLimit)
	if check.Err != nil {
		return nil, check.Err
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	s := &settings{
		block: m.GetMode() == configv1.WafMode_WAF_MODE_BLOCK, threshold: int(threshold), bodyLimit: int64(limit), values: m.GetEventValues(), exact: m.GetWithoutExceptions(),
		id: sha256.Sum256(encoded), paranoia: decimal(paranoia), limit: decimal(threshold),
	}
	if err := s.takeLists(m); err != nil {
		return nil, err
	}
	if err := s.takeExcluded(m); err != nil {
		return nil, err
	}
	e := component.Of(c)
	rules, err := e.need()
	if err != nil {
		return nil, err
	}
	var unknown []string
	if s.exclusions, unknown, err = compileExclusions(rules, m.GetExclusions()); err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		e.counters.unknownTags.Add(uint64(len(unknown)))
		c.Log().Warn("ignored WAF exclusions whose tags no rule has", zap.String("site", site), zap.Strings("tags", unknown))
	}
	return s, nil
}

func decimal(n uint32) []string { return []string{strconv.FormatUint(uint64(n), 10)} }

// takeLists makes of lists what the rule set compares with.
func (s *settings) takeLists(m *configv1.SiteWaf) error {
	for _, c := range []struct {
		field       string
		from        []string
		preset      []string
		most        int
		valid       func(string) bool
		first, last string
		to          *[]string
	}{
		{"methods", m.GetMethods(), defaultMethods, maxMethods, isMethod, "", "", &s.methods},
		{"content_types", m.GetContentTypes(), defaultTypes, maxContentTypes, isMediaType, "|", "|", &s.types},
		{"charsets", m.GetCharsets(), defaultCharsets, maxCharsets, bodies.IsToken, "|", "|", &s.charsets},
	} {
		list := c.from
		if len(list) == 0 {
			list = c.preset
		}
		if len(list) > c.most {
			return fmt.Errorf("%s has %d entries; the maximum is %d", c.field, len(list), c.most)
		}
		framed := make([]string, len(list))
		for i, v := range list {
			if !c.valid(v) {
				return fmt.Errorf("%s has the invalid entry %q", c.field, v)
			}
			framed[i] = c.first + v + c.last
		}
		*c.to = []string{strings.Join(framed, " ")}
	}
	return nil
}

func isMethod(v string) bool { return bodies.IsToken(v) && strings.ToUpper(v) == v }

func isMediaType(v string) bool {
	main, sub, _ := strings.Cut(v, "/")
	return bodies.IsToken(main) && bodies.IsToken(sub) && strings.ToLower(v) == v
}

// ownFamilies start and end an inspection, or belong to answers: without them the others are nothing.
var ownFamilies = map[uint32]bool{901: true, 949: true, 959: true, 980: true}

var errExcluded = errors.New("excluded_rules has more than 200 entries, or excluded_families more than 20")

func (s *settings) takeExcluded(m *configv1.SiteWaf) error {
	if len(m.GetExcludedRules()) > maxExcludedRules || len(m.GetExcludedFamilies()) > maxExcludedFamilies {
		return errExcluded
	}
	for _, id := range m.GetExcludedRules() {
		if err := excludable(id); err != nil {
			return err
		}
		s.rules = append(s.rules, int(id))
	}
	for _, family := range m.GetExcludedFamilies() {
		if err := excludable(min(family, lastRule) * rulesInFamily); err != nil {
			return err
		}
		s.families = append(s.families, int(family))
	}
	return nil
}

func excludable(id uint32) error {
	if id < firstRule || id > lastRule || ownFamilies[id/rulesInFamily] {
		return fmt.Errorf("rule %d cannot be excluded", id)
	}
	return nil
}
