package waf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/corazawaf/coraza/v3/types"
	"github.com/corazawaf/coraza/v3/types/variables"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	maxExclusions     = 200
	maxExclusionBytes = 256
	maxPathBytes      = 1024
	// Of all exclusions of a site: a tag has some hundreds of rules.
	maxExclusionTargets = 20_000
)

// exclusion is a part of requests that some rules leave alone.
type exclusion struct {
	rules []int
	// "" is any path.
	path   string
	prefix bool
	part   configv1.WafPart
	// None: the rules do not run.
	parts []variables.RuleVariable
	// One of them, where there are parts.
	name    string
	pattern *regexp.Regexp
}

var partVariables = map[configv1.WafPart][]variables.RuleVariable{
	configv1.WafPart_WAF_PART_ALL: nil,
	configv1.WafPart_WAF_PART_ARGUMENT: {
		variables.Args, variables.ArgsGet, variables.ArgsPost, variables.ArgsNames, variables.ArgsGetNames, variables.ArgsPostNames,
	},
	configv1.WafPart_WAF_PART_COOKIE: {variables.RequestCookies, variables.RequestCookiesNames},
	configv1.WafPart_WAF_PART_HEADER: {variables.RequestHeaders, variables.RequestHeadersNames},
}

// countedBy are rules that look at what another one counted: what is excluded from them must not be counted.
var countedBy = map[int]int{921180: 921170}

var (
	errExclusions     = fmt.Errorf("there are more than %d exclusions", maxExclusions)
	errTargets        = fmt.Errorf("the exclusions affect more than %d parts of rules", maxExclusionTargets)
	errExclusionRules = errors.New("an exclusion names neither a rule nor a tag")
	errExclusionPath  = errors.New("the path of an exclusion must begin with / and have at most 1,024 bytes")
	errExclusionName  = errors.New("the name of an exclusion is missing, longer than 256 bytes, or not allowed with its part")
)

// compileExclusions leaves out those by tags that no rule has here, and returns these tags: another rule set has them, and
// without the exclusion more is found and nothing less.
func compileExclusions(rules *ruleSet, list []*configv1.WafExclusion) (compiled []exclusion, unknown []string, err error) {
	if len(list) > maxExclusions {
		return nil, nil, errExclusions
	}
	targets := 0
	for _, m := range list {
		e, err := compileExclusion(rules, m)
		if err != nil {
			return nil, nil, err
		}
		if len(e.rules) == 0 {
			unknown = append(unknown, m.GetTag())
			continue
		}
		if targets += len(e.rules) * max(1, len(e.parts)); targets > maxExclusionTargets {
			return nil, nil, errTargets
		}
		compiled = append(compiled, e)
	}
	return compiled, unknown, nil
}

func compileExclusion(rules *ruleSet, m *configv1.WafExclusion) (e exclusion, err error) {
	switch by := m.GetRules().(type) {
	case *configv1.WafExclusion_Rule:
		if err := excludable(by.Rule); err != nil {
			return e, err
		}
		e.rules = []int{int(by.Rule)}
		if counter := countedBy[e.rules[0]]; counter != 0 {
			e.rules = append(e.rules, counter)
		}
	case *configv1.WafExclusion_Tag:
		e.rules = rules.tagged[by.Tag]
	default:
		return e, errExclusionRules
	}
	e.path, e.prefix = m.GetPath(), m.GetPathPrefix()
	if e.path != "" && (e.path[0] != '/' || len(e.path) > maxPathBytes) {
		return e, errExclusionPath
	}
	parts, known := partVariables[m.GetPart()]
	if !known {
		return e, fmt.Errorf("part %d of an exclusion needs a capability that this node does not have", m.GetPart())
	}
	e.part, e.parts = m.GetPart(), parts
	if (m.GetName() == "") != (parts == nil) || len(m.GetName()) > maxExclusionBytes {
		return e, errExclusionName
	}
	return e, e.setName(m.GetName())
}

// setName takes a name, in which "*" may stand for the indices of arrays.
func (e *exclusion) setName(name string) (err error) {
	segments := strings.Split(strings.ToLower(name), ".")
	wild := false
	for i, s := range segments {
		if i > 0 && s == "*" {
			segments[i], wild = `\d+`, true
		} else {
			segments[i] = regexp.QuoteMeta(s)
		}
	}
	if e.name = name; wild {
		e.name = ""
		e.pattern, err = regexp.Compile(`^` + strings.Join(segments, `\.`) + `$`)
	}
	return err
}

// concerns reports whether the exclusion is for a target. Whoever is spared must have asked for the path in a spelling
// that every origin reads alike.
func (e *exclusion) concerns(t *exchange.Target, plain bool) bool {
	if e.path == "" {
		return true
	}
	return plain && (t.Canonical == e.path || e.prefix && strings.HasPrefix(t.Canonical, e.path))
}

// remover is what transactions can do and their interface does not say.
type remover interface {
	RemoveRuleByID(id int)
	RemoveRuleByIDRange(first, last int)
	RemoveRuleTargetByID(id int, variable variables.RuleVariable, key string, pattern *regexp.Regexp)
}

// exclude takes out of a transaction the rules that the settings of the site leave alone, and returns the exclusions for
// parts of this request.
func (s *settings) exclude(tx remover, t *exchange.Target) (parts []*exclusion) {
	for _, id := range s.rules {
		tx.RemoveRuleByID(id)
	}
	for _, family := range s.families {
		tx.RemoveRuleByIDRange(family*rulesInFamily, family*rulesInFamily+rulesInFamily-1)
	}
	if len(s.exclusions) == 0 {
		return nil
	}
	plain := t.Plain()
	for i := range s.exclusions {
		e := &s.exclusions[i]
		switch {
		case !e.concerns(t, plain):
		case e.parts != nil:
			parts = append(parts, e)
		default:
			for _, id := range e.rules {
				tx.RemoveRuleByID(id)
			}
		}
	}
	return parts
}

// excludeParts takes what has one of some names out of a transaction, and returns the exclusions for others. A part that a
// request does not have costs nothing, whatever the number of rules it is excluded from.
func excludeParts(tx remover, list []*exclusion, part configv1.WafPart, named []types.MatchData) (others []*exclusion) {
	if len(list) == 0 || len(named) == 0 {
		return list
	}
	names := make(map[string]bool, len(named))
	for _, n := range named {
		names[strings.ToLower(n.Key())] = true
	}
	for _, e := range list {
		if e.part != part || !e.isFor(names) {
			others = append(others, e)
			continue
		}
		for _, id := range e.rules {
			for _, part := range e.parts {
				tx.RemoveRuleTargetByID(id, part, e.name, e.pattern)
			}
		}
	}
	return others
}

// isFor reports whether the exclusion is for one of some names, which are in small letters.
func (e *exclusion) isFor(names map[string]bool) bool {
	if e.pattern == nil {
		return names[strings.ToLower(e.name)]
	}
	for name := range names {
		if e.pattern.MatchString(name) {
			return true
		}
	}
	return false
}
