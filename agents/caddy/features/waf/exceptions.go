package waf

import (
	"fmt"
	"io/fs"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/corazawaf/coraza/v3/collection"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"

	"edge.svc/caddy/features/waf/bodies"
)

// exception says when a match of some rules is none. Each has its tests in exceptions_test.go, under its name; the principle
// is in docs/development/waf-exceptions.md.
type exception struct {
	name   string
	reason string
	// Rules of paranoia level 1.
	rules []int
	// evidence returns a value without its harmless parts: the rule is then asked again. It gets the value as the rule sees it,
	// and as it is in the request, decoded once.
	evidence func(value, raw string) string
}

// exceptions are all of them.
var exceptions = []exception{
	{
		// It looks at the value as it came, which others change.
		name:     "parentheses",
		reason:   "A word has a space and an opened parenthesis after it: \"perl (5.36.0) unstable\". To a shell that is a mistake, and it runs nothing of the line. A comma is part of a name.",
		rules:    []int{932230, 932235, 932250, 932260},
		evidence: withoutNamed,
	},
	{
		// It looks at letter case, which those below change.
		name:     "capitals",
		reason:   "A line of text begins with a name in which only the first letter is a capital. Unix has no program of this name.",
		rules:    []int{932230, 932235, 932250, 932260},
		evidence: withoutCapitals,
	},
	{
		name:     "prose",
		reason:   "A line of text begins with a word that is also the name of a program. It has no option, path, redirection or quoting.",
		rules:    []int{932115, 932120, 932125, 932140, 932230, 932235, 932250, 932260, 932340, 932370, 932380},
		evidence: withoutProse,
	},
	{
		name:     "titles",
		reason:   "The title of a manual names a program, and says after a dash in words what it does. No word after the dash is an option.",
		rules:    []int{932250, 932260},
		evidence: withoutTitles,
	},
	{
		name:     "arrow",
		reason:   "An arrow or a comparison stands before parentheses. The shell needs \">(\" without a space to start a process, and no number is a program.",
		rules:    []int{932130},
		evidence: withoutArrows,
	},
	{
		name:     "dots",
		reason:   "A dot inside the name of a host, the path of a URL or the address of a mailbox begins no hidden file.",
		rules:    []int{930120},
		evidence: withoutDots,
	},
	{
		name:     "longer hosts",
		reason:   "The name of a host begins with \"localhost\" and goes on.",
		rules:    []int{934110},
		evidence: withoutLongerHosts,
	},
	{
		name:     "questions",
		reason:   "A sentence begins with \"file\" or the name of a protocol, and ends with a question mark. A URL has no spaces.",
		rules:    []int{931120},
		evidence: withoutQuestions,
	},
	{
		name:     "fields",
		reason:   "A line of text has the name of a header field and a value that such a field never has: \"Location: Remote\".",
		rules:    []int{921120, 921160},
		evidence: withoutFields,
	},
	{
		name:     "versions",
		reason:   "A text names a version of HTTP. A response begins with it and has a status; a request has a method and a path before it.",
		rules:    []int{921130},
		evidence: withoutVersions,
	},
	{
		name:     "media types",
		reason:   "RFC 9110, section 5.6.6, allows any parameter, values in quotes, and empty parameters.",
		rules:    []int{920470},
		evidence: withoutParameters,
	},
	{
		name:     "accepted types",
		reason:   "RFC 9110, section 12.5.1, allows parameters with values in quotes, and an empty list.",
		rules:    []int{920600},
		evidence: withoutTypes,
	},
	{
		name:     "file names",
		reason:   "An apostrophe, a semicolon or an equals sign stands in the name of a file that is in quotes (RFC 9110, section 5.6.4). No other name follows.",
		rules:    []int{920120},
		evidence: withoutMarks,
	},
	{
		name:     "calls",
		reason:   "A text has the name of a function of PHP before parentheses. Two words in them that no operator joins are no arguments, and words before and after empty ones make it no call.",
		rules:    []int{933160},
		evidence: withoutPHPNames,
	},
	{
		name:     "SQL calls",
		reason:   "The same for functions of SQL; and a mark between the name and the parentheses makes it no call.",
		rules:    []int{942151},
		evidence: withoutSQLNames,
	},
	{
		name:     "statements",
		reason:   "A line begins with a mark and a verb of SQL: \"* Update the list\". Nothing that a database has is created, dropped or renamed, and nothing is set.",
		rules:    []int{942360},
		evidence: withoutStatements,
	},
	{
		name:     "macros",
		reason:   "A query of a dashboard has a macro of Grafana, and no call of a function of PHP.",
		rules:    []int{933180},
		evidence: withoutMacros,
	},
}

// exceptedBy are the exceptions of each rule.
var exceptedBy = func() map[int][]*exception {
	by := map[int][]*exception{}
	for i := range exceptions {
		for _, id := range exceptions[i].rules {
			by[id] = append(by[id], &exceptions[i])
		}
	}
	return by
}()

// exceptedRules are the files of the rule set in which rules with exceptions ask the operator "unless".
type exceptedRules struct{ fs.FS }

var (
	ruleBegin = regexp.MustCompile(`(?m)^SecRule `)
	ruleID    = regexp.MustCompile(`"id:(\d+),`)
	// The operator of a rule, with its negation.
	ruleOperator = regexp.MustCompile(`^(SecRule \S+ ")(!?)@(\w+) `)
)

const lowestParanoia = "tag:'paranoia-level/1'"

// ReadFile reads a file of rules, or any other as it is.
func (e exceptedRules) ReadFile(name string) ([]byte, error) {
	content, err := fs.ReadFile(e.FS, name)
	if err != nil || !strings.HasSuffix(name, ".conf") {
		return content, err
	}
	var out strings.Builder
	at := 0
	starts := ruleBegin.FindAllIndex(content, -1)
	for i, start := range starts {
		end := len(content)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		out.Write(content[at:start[0]])
		rule, err := withExceptions(string(content[start[0]:end]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.WriteString(rule)
		at = end
	}
	out.Write(content[at:])
	return []byte(out.String()), nil
}

// withExceptions writes the operator "unless" into a rule that has exceptions.
func withExceptions(rule string) (string, error) {
	found := ruleID.FindStringSubmatch(rule)
	if found == nil {
		return rule, nil
	}
	id, _ := strconv.Atoi(found[1])
	if exceptedBy[id] == nil {
		return rule, nil
	}
	if !strings.Contains(rule, lowestParanoia) || !ruleOperator.MatchString(rule) {
		return "", fmt.Errorf("rule %d cannot have exceptions", id)
	}
	return ruleOperator.ReplaceAllString(rule, fmt.Sprintf("${1}@unless %d ${2}${3} ", id)), nil
}

// excepting are those that rules with exceptions can have.
var excepting = map[string]plugintypes.OperatorFactory{"rx": newRx, "pm": newWords, "pmFromFile": newWordsOfFile}

// unless is another operator with exceptions.
type unless struct {
	rule       int
	of         plugintypes.Operator
	negated    bool
	exceptions []*exception
}

// newUnless takes the id of a rule, its operator with its negation, and the arguments of that.
func newUnless(options plugintypes.OperatorOptions) (plugintypes.Operator, error) {
	rule, rest, _ := strings.Cut(options.Arguments, " ")
	name, arguments, _ := strings.Cut(rest, " ")
	id, _ := strconv.Atoi(rule)
	name, negated := strings.CutPrefix(name, "!")
	create := excepting[name]
	if create == nil || exceptedBy[id] == nil {
		return nil, fmt.Errorf("no exceptions for rule %s with the operator %s", rule, name)
	}
	options.Arguments = arguments
	of, err := create(options)
	return unless{id, of, negated, exceptedBy[id]}, err
}

// Evaluate reports a match that stands without the harmless parts of the value.
func (u unless) Evaluate(tx plugintypes.TransactionState, value string) bool {
	if u.of.Evaluate(tx, value) == u.negated {
		return false
	}
	raws := onceDecoded(tx, value)
	if len(raws) == 0 {
		return true
	}
	// Several parts of a request can look like this one: the evidence must hold for each.
	for _, raw := range raws {
		rest := value
		for _, e := range u.exceptions {
			rest = e.evidence(rest, raw)
		}
		if rest == value || u.of.Evaluate(tx, rest) != u.negated {
			// Captures are those of the value.
			u.of.Evaluate(tx, value)
			return true
		}
		if b := budgetOf(tx.ID()); b.suppressed != nil {
			b.suppressed(u.rule, value, rest, raw)
		}
	}
	return false
}

// maxExcepted is the length of values that exceptions are for.
const maxExcepted = 64 << 10

// onceDecoded returns the parts of a request that a rule sees as a value, if it sees them as they are: none where the rule
// decoded a part again, or where the charset of the body is unknown.
func onceDecoded(tx plugintypes.TransactionState, value string) []string {
	if len(value) > maxExcepted || !utf8.ValidString(value) {
		return nil
	}
	vars := tx.Variables()
	for _, name := range []string{"content-type", "accept"} {
		if slices.ContainsFunc(vars.RequestHeaders().Get(name), func(sent string) bool { return strings.EqualFold(sent, value) }) {
			return []string{value}
		}
	}
	for _, contentType := range vars.RequestHeaders().Get("content-type") {
		if !isUnicode(contentType) {
			return nil
		}
	}
	b := budgetOf(tx.ID())
	if b == nil || b.exact {
		return nil
	}
	if b.raws == nil {
		b.raws = rawValues(vars)
	}
	raws := b.raws[looseKey(value)]
	// Some transformations make text of bytes that are none.
	if slices.ContainsFunc(raws, func(raw string) bool { return !utf8.ValidString(raw) }) {
		return nil
	}
	return raws
}

// rawValues are the parts of a request that rules with exceptions look at, by their loose keys.
func rawValues(vars plugintypes.TransactionVariables) map[string][]string {
	raws := map[string][]string{}
	add := func(raw string) {
		if raw != "" && len(raw) <= maxExcepted {
			if key := looseKey(raw); !slices.Contains(raws[key], raw) {
				raws[key] = append(raws[key], raw)
			}
		}
	}
	for _, c := range []collection.Collection{vars.Args(), vars.ArgsNames(), vars.RequestCookies(), vars.RequestCookiesNames(), vars.RequestXML()} {
		for _, m := range c.FindAll() {
			add(m.Value())
		}
	}
	// A name of a file without quotes has no exceptions: readers differ in where it ends.
	for _, m := range vars.MultipartPartHeaders().FindAll() {
		add(bodies.PlainFile(quotedName(m.Value())))
	}
	return raws
}

// isUnicode reports whether a media type has no charset, or one that is UTF-8 or a part of it.
func isUnicode(contentType string) bool {
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return !strings.Contains(strings.ToLower(contentType), "charset")
	}
	charset, found := parameters["charset"]
	return !found || slices.Contains([]string{"utf-8", "utf8", "us-ascii", "ascii"}, strings.ToLower(charset))
}

// looseKey is a text without what transformations change that decode nothing: letter case, spaces, quotes and slashes.
func looseKey(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			out = append(out, strings.ToLower(string(bodies.AppendLookalike(nil, r)))...)
			i += size
			continue
		}
		i++
		switch {
		case c <= ' ' || strings.IndexByte(`\"'^,;/+`, c) >= 0:
		case 'A' <= c && c <= 'Z':
			out = append(out, c|0x20)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
