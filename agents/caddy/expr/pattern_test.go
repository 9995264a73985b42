package expr

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPatternsAreOverBytes(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		matches          bool
	}{
		{"^.$", "\xff", true},
		{"^.$", "é", false},
		{"^..$", "é", true},
		{"^.$", "\r", true},
		{"^.$", "\n", false},
		{`^[^a]\W\D$`, "\xc3\xff\x80", true},
		{`\bé`, "é", false},
		{`a\b`, "a\xff", true},
		{`a$`, "a\n", false},
	} {
		// No pattern has é in it; here it stands for its bytes.
		p, err := patternOf(strings.ReplaceAll(c.pattern, "é", `[^\x00-\x7f]`))
		if err != nil {
			t.Fatal(err)
		}
		if got, failure := p.matches(c.subject); got != c.matches || failure != 0 {
			t.Errorf("%s on %q: %v %q", c.pattern, c.subject, got, failure)
		}
	}
}

func TestWhatIsInTheSubsetIsCompiled(t *testing.T) {
	for source, accepted := range map[string]bool{
		"": true, "a|": true, "(|a)": true, "a{0}": true, "a{1000}": true, "a{2,}?": true, `[\]\-\d_-]`: true, "[-a]": true, "[]": false,
		"[^]": false, "a{1001}": false, "a{2,1}": false, "a{01}": false, "a{,2}": false, "a{": false, "a}": false, "]": false, "a**": false,
		"a+++": false, "(a)*": false, "(a){2}": false, "^*": false, `\b+`: false, "(?i)a": false, "(a": false, "a)": false, "[a": false,
		`\s`: false, `\z`: false, `\x80`: false, `\x7f`: true, `\x7`: false, `\_`: true, "[[:alpha:]]": false, "[:a:]": false, "[a-\\d]": false,
		"[b-a]": false, "[a-b-c]": false, "[--a]": false, `\`: false, "a\x00": false, "é": false, strings.Repeat("(", 128) + strings.Repeat(")", 128): true,
	} {
		checked, err := checkRegex(source)
		if (err == nil) != accepted {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if err != nil {
			continue
		}
		e, err := newEngine(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
		} else if e.regexp.NumSubexp() != checked.groups {
			t.Errorf("%q has %d groups", source, checked.groups)
		}
	}
}

func TestTextsThatEveryMatchHas(t *testing.T) {
	for source, texts := range map[string]string{
		"curl":                          "curl",
		"(curl|wget|python-requests)/":  "curl wget python-requests",
		"^/shop/([0-9]+)$":              "/shop/",
		"a+bc":                          "bc",
		"x{3}":                          "x",
		"x{0,3}":                        "",
		"ab?":                           "a",
		"(ab|)":                         "",
		"(ab|.)":                        "",
		"[cC]url":                       "url",
		"a|b|c|d|ee":                    "",
		`a\.b`:                          "a.b",
		"[a-z]+":                        "",
		"":                              "",
		"^$":                            "",
		"(foo|foobar)(longer[0-9]here)": "longer",
	} {
		if got := strings.Join(neededBy(source), " "); got != texts {
			t.Errorf("%q: %q", source, got)
		}
	}
	var many []string
	for i := range maxNeeded + 1 {
		many = append(many, fmt.Sprintf("%c%c", 'a'+i, 'b'+i))
	}
	if got := neededBy(strings.Join(many, "|")); got != nil {
		t.Errorf("%q", got)
	}
}

func TestAPatternIsCompiledOnceAndGivenBack(t *testing.T) {
	const source = "only-in-this-test{100}"
	first, _ := patternOf(source)
	second, _ := patternOf(source)
	if first != second || first.ready() == nil {
		t.Fatal("two of the same")
	}
	runtime.KeepAlive(second)
	first, second = nil, nil
	eventually(t, "nobody has it, and it is gone", func() bool {
		patternsLock.Lock()
		defer patternsLock.Unlock()
		_, there := patterns[source]
		return !there
	})
}

// Rules are compiled while requests are evaluated.
func TestPatternsAreUsedWhileOthersAreMade(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				p, err := patternOf(fmt.Sprintf("together%d", i%50))
				if err != nil {
					t.Error(err)
					return
				}
				if matches, failure := p.matches(fmt.Sprintf("xtogether%d\xff", i%50)); !matches || failure != 0 {
					t.Errorf("%d: %v %q", i, matches, failure)
				}
				if i%50 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

func TestAPatternThatCostsTooMuchFailsTheEvaluation(t *testing.T) {
	large, err := patternOf(strings.Repeat("a{1000}", 9))
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := large.matches("a"); failure != PatternBudget {
		t.Errorf("of 9000 instructions: %q", failure)
	}
	slow, err := patternOf(strings.Repeat("a{1000}", 8))
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := slow.matches("a"); failure != 0 {
		t.Errorf("of a short subject: %q", failure)
	}
	if _, failure := slow.matches(strings.Repeat("b", 32<<10)); failure != PatternBudget {
		t.Errorf("of a long subject: %q", failure)
	}
	if _, failure := slow.replace(strings.Repeat("b", 32<<10), nil); failure != PatternBudget {
		t.Errorf("replaced: %q", failure)
	}
}

func TestTenThousandHostilePatternsStayBelow256MiB(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	held := make([]*pattern, 10_000)
	failed := 0
	for i := range held {
		p, err := patternOf(fmt.Sprintf("(h%d|[b-df-h0-9]{900})x([^a]{900})", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, failure := p.matches("h\xff"); failure == PatternBudget {
			failed++
		}
		held[i] = p
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d MiB, %d failed, %d instructions", taken>>20, failed, programs.Load())
	if taken > 256<<20 || failed == 0 || failed == len(held) {
		t.Errorf("%d MiB, %d failed", taken>>20, failed)
	}
	runtime.KeepAlive(held)
	held = nil
	eventually(t, "the instructions come back", func() bool { return programs.Load() < maxPrograms/2 })
}

// eventually collects garbage until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		runtime.GC()
	}
}
