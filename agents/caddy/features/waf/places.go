package waf

import (
	"regexp"
	"slices"
	"strings"

	"github.com/corazawaf/coraza/v3/collection"
	"github.com/corazawaf/coraza/v3/types"
	"github.com/corazawaf/coraza/v3/types/variables"

	"edge.svc/caddy/exchange"
)

const (
	// Matches of a request that an event keeps, and bytes of a name.
	maxMatches   = 32
	maxMatchName = 256
	// Places of one request that are told apart. Beyond, further places are not counted.
	maxPlaces = 512
)

// partOf are the parts of a request that exclusions know, by the engine's name of a collection without its tail.
var partOf = map[string]string{
	"ARGS": "argument", "ARGS_GET": "argument", "ARGS_POST": "argument", "REQUEST_COOKIES": "cookie", "REQUEST_HEADERS": "header",
}

// weights are what one match adds to the score of a request.
var weights = map[types.RuleSeverity]int{
	types.RuleSeverityCritical: 5, types.RuleSeverityError: 4, types.RuleSeverityWarning: 3, types.RuleSeverityNotice: 2,
}

// place is where a rule matched.
type place struct {
	rule       int
	part, name string
}

// found are all places where rules matched in a request, each once with what its matches weigh.
type found struct {
	at   map[place]int
	list []exchange.WAFMatch
}

// note adds the matches of a rule. The last link of a chain counts for the score, as often as it matched.
func (f *found) note(rule types.MatchedRule, headers collection.Map, values bool) {
	data := rule.MatchedDatas()
	last := 0
	for _, d := range data {
		last = max(last, d.ChainLevel())
	}
	for _, d := range data {
		if d.ChainLevel() == last {
			at, of := placeOf(d, data, headers)
			at.rule = rule.Rule().ID()
			f.add(at, weights[rule.Rule().Severity()], of, values)
		}
	}
}

func (f *found) add(at place, points int, of types.MatchData, values bool) {
	if i, known := f.at[at]; known {
		f.list[i].Points += points
		return
	}
	if len(f.list) == maxPlaces {
		return
	}
	if f.at == nil {
		f.at = map[place]int{}
	}
	// The engine's texts are pieces of the body.
	at.name = strings.Clone(at.name)
	m := exchange.WAFMatch{Rule: at.rule, Part: at.part, Name: at.name, Points: points}
	if values && len(f.list) < maxMatches && mayBeTold(at.part, at.name) {
		m.Value = masked(around(of.Value(), of.Data()))
	}
	f.at[at] = len(f.list)
	f.list = append(f.list, m)
}

// deduct takes away so many times what others found.
func (f *found) deduct(others *found, times int) {
	for _, m := range others.list {
		if i, known := f.at[place{m.Rule, m.Part, m.Name}]; known {
			f.list[i].Points = max(f.list[i].Points-times*m.Points, m.Points)
		}
	}
}

// kept are the places that an event keeps: one of each rule before a second one of any.
func (f *found) kept() []exchange.WAFMatch {
	if len(f.list) <= maxMatches {
		return slices.Clip(f.list)
	}
	var firsts, others []exchange.WAFMatch
	for _, m := range f.list {
		if slices.ContainsFunc(firsts, func(known exchange.WAFMatch) bool { return known.Rule == m.Rule }) {
			others = append(others, m)
		} else {
			firsts = append(firsts, m)
		}
	}
	return slices.Clone(append(firsts, others...)[:maxMatches])
}

// placeOf says where in the request a match is, and which piece of what the rule saw shows it. What the last link of a chain
// looks at can be a copy that an earlier link made; the copy's name, or else the earlier link, says of what.
func placeOf(d types.MatchData, data []types.MatchData, headers collection.Map) (place, types.MatchData) {
	at := namedPlace(d, headers)
	if at.part == "argument" || at.part == "cookie" || isCopy(d) && at.name != "" || isMatchedVars(d) {
		return at, d
	}
	of := d
	for _, other := range slices.Backward(data) {
		if other.ChainLevel() >= d.ChainLevel() {
			continue
		}
		earlier := namedPlace(other, headers)
		if earlier.part == "argument" || earlier.part == "cookie" {
			return earlier, other
		}
		if at.name == "" && earlier.name != "" {
			at, of = earlier, other
		}
	}
	return at, of
}

// isCopy reports whether a match is in something that rules keep for themselves.
func isCopy(d types.MatchData) bool {
	return d.Variable() == variables.TX || isMatchedVars(d)
}

// isMatchedVars reports whether a match is in what an earlier link matched, each with its own name.
func isMatchedVars(d types.MatchData) bool { return d.Variable() == variables.MatchedVars }

var (
	// A copy is named after what it was made of: "rfi_parameter_args:url", "MATCHED_VARS:ARGS:q".
	copied = regexp.MustCompile(`(?i)(ARGS|ARGS_GET|ARGS_POST|REQUEST_COOKIES|REQUEST_HEADERS)(?:_NAMES)?:(.+)$`)
	// Each header has one of its own in the rules about restricted headers.
	copiedHeader = regexp.MustCompile(`^header_name_\d+_(.+)$`)
)

// namedPlace is the part of the request that a match is in by its own name; all where it has none. A header that a rule
// misses is no part of the request.
func namedPlace(d types.MatchData, headers collection.Map) place {
	part, known := partOf[strings.TrimSuffix(d.Variable().Name(), "_NAMES")]
	name := d.Key()
	if !known && isCopy(d) {
		if m := copied.FindStringSubmatch(name); m != nil {
			part, name, known = partOf[strings.ToUpper(m[1])], m[2], true
		} else if m := copiedHeader.FindStringSubmatch(name); m != nil {
			part, name, known = "header", m[1], true
		}
	}
	if !known || name == "" || len(name) > maxMatchName || part == "header" && len(headers.Get(strings.ToLower(name))) == 0 {
		return place{part: "all"}
	}
	return place{part: part, name: name}
}
