package edge

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/crstest"
	"edge.svc/caddy/internal/edgetest"
)

// allRegressionTests has every regression test of the rule set run, not only the sample.
const allRegressionTests = "WAF_ALL_RULES"

// sampledTests is how many of the rule set's own tests run each time.
const sampledTests = 500

// missingTests are those of all of them that find less, or more, than they say.
var missingTests = map[string]string{
	"920100-3-1":  "was seen by nobody: the server itself answers OPTIONS *",
	"920100-16-1": "does not find 920100: the server completes a target without a path",
	"920171-2-1":  "does not find 920171: how a body is framed is no field of a header here",
	"920171-3-1":  "does not find 920171: how a body is framed is no field of a header here",
	"920300-2-1":  "was seen by nobody: the server itself answers OPTIONS *",
	"920430-5-1":  "does not find 920430: a version that is not said is 1.1 here",
	"920540-5-1":  "finds 920540: a request without a body is no JSON here, whatever it says",
	"920620-1-1":  "finds 920620: another server joins two fields of one name",
	"949110-1-1":  "does not find 949110: the edge weighs the score, no rule does",
	"949110-4-1":  "does not find 949110: the edge weighs the score, no rule does",
}

// refusedTests are those that the edge, or the server in front of it, answers before the rules see them.
var refusedTests = map[string][]string{
	"refused 400 by the server": {
		"920100-2-1", "920100-11-1", "920100-12-1", "920100-13-1", "920100-15-1", "920160-1-1", "920160-2-1", "920160-3-1", "920160-5-1",
		"920430-4-1", "920430-6-1", "920430-7-1", "920430-10-1", "921140-1-1",
	},
	"refused 404 unknown-host":       {"920270-4-1", "920274-1-1", "920280-1-1", "920290-1-1", "920290-2-1", "920290-4-1"},
	"refused 405 method-not-allowed": {"920100-4-1", "920100-5-1", "920100-6-1", "920300-3-1"},
	"refused 505 by the server":      {"920180-4-1", "920280-3-1", "920430-3-1", "920430-8-1", "920430-9-1"},
	"refused: a setting that no site has": {
		"920250-1-1", "920250-2-1", "920250-3-1", "920250-4-1", "920360-1-1", "920370-1-1", "920380-1-1", "920390-1-1", "920410-1-1",
	},
	"refused: a field with an ambiguous name": {
		"933110-3-1", "933110-13-1", "933110-14-1", "933110-19-1", "933110-20-1", "933110-21-1", "933110-22-1", "933110-23-1", "933110-24-1",
		"933110-25-1", "933110-26-1", "933110-27-1", "933220-2-1", "933220-4-1", "944140-3-1", "944140-8-1",
	},
	"refused: no answer": {"920400-1-1"},
}

// unset are rules that look at what their setting says, which sites do not have: they never match.
var unset = []int{920250, 920360, 920370, 920380, 920390, 920410}

// expectedOf returns the rules that must match, and why some need not: the edge takes the fields away that they look at, because
// programs read their names in two ways.
func expectedOf(r *crstest.Test) (ids []int, excuse string) {
	for _, id := range r.Output.Log.Expect {
		if slices.Contains(unset, id) {
			return nil, "refused: a setting that no site has"
		}
	}
	for name := range r.Input.Headers {
		if strings.ContainsAny(name, "_.") {
			return r.Output.Log.Expect, "refused: a field with an ambiguous name"
		}
	}
	return r.Output.Log.Expect, ""
}

// The rule set finds over the whole edge what its own tests say. Each is counted as matched, as refused by the edge before
// the rules, or as missing.
func TestRegressionTestsOfTheRuleSetForTheWAF(t *testing.T) {
	tests := crstest.All(t)
	if os.Getenv(allRegressionTests) == "" {
		size := sampledTests
		if edgetest.UnderRace {
			size /= 10
		}
		sample := make([]crstest.Test, 0, size)
		for i := range size {
			sample = append(sample, tests[i*len(tests)/size])
		}
		tests = sample
	}
	e := startInspected(t, wafSettings(detect, func(m *configv1.SiteWaf) {
		m.ParanoiaLevel = 4
		// The rule set's own lists, which its tests are for.
		m.Methods = []string{"GET", "HEAD", "POST", "OPTIONS"}
		m.ContentTypes = []string{
			"application/x-www-form-urlencoded", "multipart/form-data", "text/xml", "application/xml", "application/soap+xml", "application/json",
		}
		m.Charsets = []string{"utf-8", "iso-8859-1", "iso-8859-15", "windows-1252"}
	}), func(s *configv1.Site) {
		s.Domains = append(s.Domains, &configv1.Domain{Form: configv1.DomainForm_DOMAIN_FORM_PATTERN, Name: ".*"})
	})
	matched, refused, missing := 0, map[string]int{}, []string{}
	for i := range tests {
		name, outcome := tests[i].Name, e.outcome(t, &tests[i])
		known, _, _ := strings.Cut(missingTests[name], ":")
		for reason, names := range refusedTests {
			if slices.Contains(names, name) {
				known = reason
			}
		}
		if outcome != known {
			t.Errorf("%s: %q and not %q", name, outcome, known)
		}
		switch {
		case outcome == "":
			matched++
		case strings.HasPrefix(outcome, "refused"):
			refused[outcome]++
		default:
			missing = append(missing, name+" "+outcome)
		}
	}
	t.Logf("%d tests: %d matched, refused before the rules: %v, missing: %s", len(tests), matched, refused, strings.Join(missing, "\n"))
}

// outcome runs a test and says what is wrong, "" when nothing is.
func (e *inspected) outcome(t *testing.T, test *crstest.Test) string {
	t.Helper()
	c, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A request that has less than it says is waited for.
	end := time.AfterFunc(5*time.Second, func() { _ = c.(*net.TCPConn).CloseWrite() })
	defer end.Stop()
	if _, err := c.Write([]byte(test.Raw())); err != nil {
		return "refused: " + err.Error()
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "refused: no answer"
	}
	defer res.Body.Close()
	if code := res.Header.Get("X-Svc-Error"); code != "" && code != "origin-unreachable" {
		return fmt.Sprintf("refused %d %s", res.StatusCode, code)
	}
	id := res.Header.Get("X-Request-Id")
	if id == "" && res.StatusCode >= 400 {
		return fmt.Sprintf("refused %d by the server", res.StatusCode)
	}
	if id == "" {
		return "was seen by nobody"
	}
	// Of those that were refused nobody took it.
	one := <-e.found
	for one.id != id {
		one = <-e.found
	}
	found := one.Rules
	expected, excuse := expectedOf(test)
	if expected == nil && excuse != "" {
		return excuse
	}
	for _, id := range expected {
		if !slices.Contains(found, id) && excuse != "" {
			return excuse
		}
		if !slices.Contains(found, id) {
			return fmt.Sprintf("does not find %d", id)
		}
	}
	for _, id := range test.Output.Log.NoExpect {
		if slices.Contains(found, id) {
			return fmt.Sprintf("finds %d", id)
		}
	}
	return ""
}
