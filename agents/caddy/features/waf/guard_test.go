//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"

	"edge.svc/caddy/features/waf/bodies"
	"edge.svc/caddy/internal/crstest"
	"edge.svc/caddy/internal/exchangetest"
)

// exactRules is the rule set without exceptions.
var exactRules = sync.OnceValues(func() (*ruleSet, error) {
	return buildRulesFrom(leanRules{coreruleset.FS}, maxPatternTime*time.Millisecond)
})

// bothVerdicts inspects a request by the rule set without exceptions and by the usual one.
func bothVerdicts(t *testing.T, s *settings, raw string) (exact, usual verdict, ok bool) {
	t.Helper()
	read := func(rules *ruleSet) (v verdict, ok bool) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil || r.URL.Path == "" {
			return v, false
		}
		r.RemoteAddr = "203.0.113.7:40000"
		_, body, _ := strings.Cut(raw, "\r\n\r\n")
		looked := look{}
		if body != "" {
			looked = look{in: strings.NewReader(body), whole: true}
		}
		v, err = rules.inspect(exchangetest.New(httptest.NewRecorder(), r), s, looked, always)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		return v, true
	}
	rules, err := exactRules()
	if err != nil {
		t.Fatal(err)
	}
	if exact, ok = read(rules); !ok {
		return exact, usual, false
	}
	if rules, err = component.Of(sharedCore()).need(); err != nil {
		t.Fatal(err)
	}
	usual, ok = read(rules)
	return exact, usual, ok
}

// validByRFC are tests of which only a rule that they do not expect says an attack. Their own rule still matches.
var validByRFC = map[string]string{
	"920310-1-1": "an empty list is valid (RFC 9110, section 12.5.1)",
	"920310-4-1": "an empty list is valid (RFC 9110, section 12.5.1)",
	"920311-1-1": "an empty list is valid (RFC 9110, section 12.5.1)",
}

// Exceptions cost none of the detections of the rule set's own tests: neither a block, nor a match that a test expects.
func TestExceptionsLoseNoDetectionOfTheRuleSet(t *testing.T) {
	s := settingsOf(t, asIs)
	all, detected := crstest.All(t), 0
	step := guardStep()
	for i := 0; i < len(all); i += step {
		exact, usual, ok := bothVerdicts(t, s, all[i].Raw())
		if !ok || exact.score < s.threshold {
			continue
		}
		if len(all[i].Output.Log.Expect) == 0 {
			// A test that nothing is found.
			continue
		}
		detected++
		if usual.score < s.threshold && validByRFC[all[i].Name] == "" {
			t.Errorf("%s: %v and not %v", all[i].Name, usual, exact)
		}
		for _, id := range all[i].Output.Log.Expect {
			if slices.Contains(exact.rules, id) && !slices.Contains(usual.rules, id) {
				t.Errorf("%s: does not find %d", all[i].Name, id)
			}
		}
	}
	if detected*step < 2000 {
		t.Errorf("%d are detected", detected)
	}
	t.Logf("%d detections", detected)
}

// mutations change an attack in the ways that programs which look for gaps do.
var mutations = map[string]func(string) string{
	"unchanged":        func(a string) string { return a },
	"upper case":       strings.ToUpper,
	"text before":      func(a string) string { return "Hello, this is my message " + a },
	"lines before":     func(a string) string { return "Dear team,\r\nhere is the file.\r\n" + a },
	"text after":       func(a string) string { return a + " thank you for your help" },
	"lines after":      func(a string) string { return a + "\nthank you\nfor your help" },
	"text around":      func(a string) string { return "Order 12\n" + a + "\nBest regards" },
	"tabs":             func(a string) string { return strings.ReplaceAll(a, " ", "\t") },
	"two spaces":       func(a string) string { return strings.ReplaceAll(a, " ", "  ") },
	"lines":            func(a string) string { return strings.ReplaceAll(a, ";", "\n") },
	"ands":             func(a string) string { return strings.ReplaceAll(a, ";", " && ") },
	"pipes":            func(a string) string { return strings.ReplaceAll(a, ";", " | ") },
	"spaced":           func(a string) string { return strings.ReplaceAll(a, ";", " ; ") },
	"in quotes":        func(a string) string { return `"` + a + `"` },
	"after a quote":    func(a string) string { return "x' " + a },
	"in parentheses":   func(a string) string { return "(" + a + ")" },
	"after an address": func(a string) string { return "https://www.example.com/a.b?c=" + a },
	"in markup":        func(a string) string { return "<p>text</p>" + a + "<p>text</p>" },
	"in a comment":     func(a string) string { return "<!-- wp:paragraph -->" + a + "<!-- /wp:paragraph -->" },
	"in JSON": func(a string) string {
		return `{"a":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(a) + `"}`
	},
	"encoded again":        url.QueryEscape,
	"after a field":        func(a string) string { return "Job: Developer\r\n" + a },
	"after a macro":        func(a string) string { return "SELECT 1 WHERE $__timeFilter(time) " + a },
	"lower case":           strings.ToLower,
	"a line break before":  func(a string) string { return "\n" + a },
	"a semicolon before":   func(a string) string { return ";" + a },
	"a pipe before":        func(a string) string { return "|" + a },
	"an and before":        func(a string) string { return "&" + a },
	"two ands before":      func(a string) string { return "x && " + a },
	"spaces around":        func(a string) string { return "   " + a + "   " },
	"vertical tabs":        func(a string) string { return strings.ReplaceAll(a, " ", "\v") },
	"form feeds":           func(a string) string { return strings.ReplaceAll(a, " ", "\f") },
	"line breaks":          func(a string) string { return strings.ReplaceAll(a, " ", "\n") },
	"CR LF":                func(a string) string { return strings.ReplaceAll(a, " ", "\r\n") },
	"IFS":                  func(a string) string { return strings.ReplaceAll(a, " ", "${IFS}") },
	"quoted by backticks":  func(a string) string { return "`" + a + "`" },
	"substituted":          func(a string) string { return "$(" + a + ")" },
	"in braces":            func(a string) string { return "{" + a + "}" },
	"in brackets":          func(a string) string { return "[" + a + "]" },
	"in apostrophes":       func(a string) string { return "'" + a + "'" },
	"after a quote and )":  func(a string) string { return "x\") " + a },
	"before a comment":     func(a string) string { return a + " -- " },
	"before a number sign": func(a string) string { return a + " # the rest" },
	"twice, in lines":      func(a string) string { return a + "\n" + a },
	"as an item":           func(a string) string { return "* first\n* " + a },
	"after a title":        func(a string) string { return "uname - print system information\n" + a },
	"after a page":         func(a string) string { return "See perl (1)\n" + a },
	"in Chinese":           func(a string) string { return "你好\n" + a + "\n谢谢" },
	"in an element":        func(a string) string { return "<em class=\"a\">" + a + "</em>" },
	"long text before": func(a string) string {
		return strings.Repeat("The words of this line are all ordinary. ", 20) + "\n" + a
	},
}

// guardStep is how many tests of the rule set one stands for: WAF_ALL_RULES has all of them run.
func guardStep() int {
	if os.Getenv("WAF_ALL_RULES") != "" {
		return 1
	}
	return 8
}

// formOf is a request with a form that has one value.
func formOf(value string) string {
	body := "a=" + url.QueryEscape(value)
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.com\r\nUser-Agent: a\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// attacksOf returns the value of each argument of a test that is a form or a query.
func attacksOf(test *crstest.Test) []string {
	text := test.Input.Data
	if text == "" {
		_, text, _ = strings.Cut(test.Input.URI, "?")
	} else if kind := bodies.KindOf(test.Input.Headers["Content-Type"]); kind != bodies.Form && test.Input.Headers["Content-Type"] != "" {
		return nil
	}
	values, err := url.ParseQuery(strings.ReplaceAll(strings.TrimRight(text, "\r\n"), ";", "%3B"))
	if err != nil {
		return nil
	}
	var attacks []string
	for name, list := range values {
		attacks = append(attacks, name)
		attacks = append(attacks, list...)
	}
	slices.Sort(attacks)
	return attacks
}

// How many kinds of mutations there are, and how many mutations the rule set detects, at least.
const leastMutations, leastDetected = 50, 10_000

// Each mutation of an attack that the rule set detects by itself is detected with the exceptions, too.
func TestExceptionsLoseNoMutationOfAnAttack(t *testing.T) {
	s := settingsOf(t, asIs)
	tried, detected, seen, around := 0, 0, map[string]bool{}, map[string][]int{}
	for name, mutate := range mutations {
		if exact, _, ok := bothVerdicts(t, s, formOf(mutate("hello"))); ok {
			around[name] = exact.rules
		}
	}
	all, step := crstest.All(t), guardStep()
	for i := 0; i < len(all); i += step {
		if len(all[i].Output.Log.Expect) == 0 || !aboutExceptions(&all[i]) {
			continue
		}
		for _, attack := range attacksOf(&all[i]) {
			if seen[attack] || len(attack) < 3 {
				continue
			}
			seen[attack] = true
			if exact, _, ok := bothVerdicts(t, s, formOf(attack)); !ok || exact.score < s.threshold {
				continue
			}
			for name, mutate := range mutations {
				tried++
				exact, usual, ok := bothVerdicts(t, s, formOf(mutate(attack)))
				if !ok || exact.score < s.threshold {
					continue
				}
				// What is only found of the text around is none of the attack.
				if !slices.ContainsFunc(exact.rules, func(id int) bool { return !slices.Contains(around[name], id) }) {
					continue
				}
				if detected++; usual.score < s.threshold {
					t.Errorf("%q, %s: %v", attack, name, exact)
				}
			}
		}
	}
	if len(mutations) < leastMutations || detected*step < leastDetected {
		t.Errorf("%d mutations of %d kinds are detected", detected, len(mutations))
	}
	t.Logf("%d of %d mutations of %d kinds are detected", detected, tried, len(mutations))
}

// aboutExceptions reports whether a test expects a rule of a family in which rules have exceptions.
func aboutExceptions(test *crstest.Test) bool {
	return slices.ContainsFunc(test.Output.Log.Expect, func(id int) bool {
		for excepted := range exceptedBy {
			if id/rulesInFamily == excepted/rulesInFamily {
				return true
			}
		}
		return false
	})
}
