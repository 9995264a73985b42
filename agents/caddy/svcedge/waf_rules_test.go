package svcedge

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	regression "github.com/corazawaf/coraza-coreruleset/v4/tests"
	"go.yaml.in/yaml/v3"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// allRegressionTests has every regression test of the rule set run, not only the sample.
const allRegressionTests = "WAF_ALL_RULES"

// sampledTests is how many of the rule set's own tests run each time.
const sampledTests = 500

// missingTests is how many of all of them may find less, or more, than they say.
const missingTests = 16

// ruleTest is one request of the rule set's own tests.
type ruleTest struct {
	name  string
	input struct {
		Method  string
		URI     string
		Version string
		Headers map[string]string
		Data    string
		Encoded string `yaml:"encoded_request"`
		Auto    *bool  `yaml:"autocomplete_headers"`
	}
	output struct {
		Status int
		Log    struct {
			Expect   []int `yaml:"expect_ids"`
			NoExpect []int `yaml:"no_expect_ids"`
		}
		ExpectError bool `yaml:"expect_error"`
	}
}

// ruleTests reads the tests of rules for requests, in the order of their names.
func ruleTests(t *testing.T) (all []ruleTest) {
	t.Helper()
	err := fs.WalkDir(regression.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(path, "REQUEST-") {
			return err
		}
		content, err := regression.FS.ReadFile(path)
		if err != nil {
			return err
		}
		var file struct {
			Rule  int `yaml:"rule_id"`
			Tests []struct {
				ID     int `yaml:"test_id"`
				Stages []struct{ Input, Output yaml.Node }
			}
		}
		if err := yaml.Unmarshal(content, &file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, test := range file.Tests {
			for i, stage := range test.Stages {
				one := ruleTest{name: fmt.Sprintf("%d-%d-%d", file.Rule, test.ID, i+1)}
				if err := stage.Input.Decode(&one.input); err != nil {
					return fmt.Errorf("%s: %w", one.name, err)
				}
				if err := stage.Output.Decode(&one.output); err != nil {
					return fmt.Errorf("%s: %w", one.name, err)
				}
				all = append(all, one)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unset are rules that look at what their setting says, which sites do not have: they never match.
var unset = []int{920250, 920360, 920370, 920380, 920390, 920410}

// expected are the rules that must match, and why some need not: the edge takes the fields away that they look at, because
// programs read their names in two ways.
func (r *ruleTest) expected() (ids []int, excuse string) {
	for _, id := range r.output.Log.Expect {
		if slices.Contains(unset, id) {
			return nil, "refused: a setting that no site has"
		}
	}
	for name := range r.input.Headers {
		if strings.ContainsAny(name, "_.") {
			return r.output.Log.Expect, "refused: a field with an ambiguous name"
		}
	}
	return r.output.Log.Expect, ""
}

// raw is the request as it goes over the wire.
func (r *ruleTest) raw() string {
	if r.input.Encoded != "" {
		decoded, _ := base64.StdEncoding.DecodeString(r.input.Encoded)
		return string(decoded)
	}
	method, target, version := r.input.Method, r.input.URI, r.input.Version
	if method == "" {
		method = "GET"
	}
	if target == "" {
		target = "/"
	}
	if version == "" {
		version = "HTTP/1.1"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\n", method, target, version)
	has := func(name string) bool {
		for known := range r.input.Headers {
			if strings.EqualFold(known, name) {
				return true
			}
		}
		return false
	}
	for name, value := range r.input.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if r.input.Auto == nil || *r.input.Auto {
		if r.input.Data != "" && !has("Content-Type") {
			b.WriteString("Content-Type: application/x-www-form-urlencoded\r\n")
		}
		if r.input.Data != "" && !has("Content-Length") && !has("Transfer-Encoding") {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.input.Data))
		}
		if !has("Connection") {
			b.WriteString("Connection: close\r\n")
		}
	}
	b.WriteString("\r\n")
	b.WriteString(r.input.Data)
	return b.String()
}

// The rule set finds over the whole edge what its own tests say. Each is counted as matched, as refused by the edge before
// the rules, or as missing.
func TestRegressionTestsOfTheRuleSetForTheWAF(t *testing.T) {
	tests := ruleTests(t)
	if os.Getenv(allRegressionTests) == "" {
		size := sampledTests
		if edgetest.UnderRace {
			size /= 10
		}
		sample := make([]ruleTest, 0, size)
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
		switch outcome := e.outcome(t, &tests[i]); {
		case outcome == "":
			matched++
		case strings.HasPrefix(outcome, "refused"):
			refused[outcome]++
		default:
			missing = append(missing, tests[i].name+" "+outcome)
		}
	}
	t.Logf("%d tests: %d matched, refused before the rules: %v, missing: %s", len(tests), matched, refused, strings.Join(missing, "\n"))
	if n := matched + len(missing); n < len(tests)*97/100 {
		t.Errorf("the rules saw %d of %d tests", n, len(tests))
	}
	if len(missing) > missingTests {
		t.Errorf("%d of %d tests are missing", len(missing), len(tests))
	}
}

// outcome runs a test and says what is wrong, "" when nothing is.
func (e *inspected) outcome(t *testing.T, test *ruleTest) string {
	t.Helper()
	c, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A request that has less than it says is waited for.
	end := time.AfterFunc(5*time.Second, func() { _ = c.(*net.TCPConn).CloseWrite() })
	defer end.Stop()
	if _, err := c.Write([]byte(test.raw())); err != nil {
		return "refused: " + err.Error()
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "refused: no answer"
	}
	defer res.Body.Close()
	if code := res.Header.Get("X-Svc-Error"); code != "" && code != "origin-unreachable" {
		e.drain()
		return fmt.Sprintf("refused %d %s", res.StatusCode, code)
	}
	if res.Header.Get("X-Request-Id") == "" && res.StatusCode >= 400 {
		e.drain()
		return fmt.Sprintf("refused %d by the server", res.StatusCode)
	}
	var found []int
	select {
	case one := <-e.found:
		found = one.Rules
	case <-time.After(10 * time.Second):
		return "was seen by nobody"
	}
	expected, excuse := test.expected()
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
	for _, id := range test.output.Log.NoExpect {
		if slices.Contains(found, id) {
			return fmt.Sprintf("finds %d", id)
		}
	}
	return ""
}

// drain forgets what was noted of an exchange that is over, if anything was.
func (e *inspected) drain() {
	select {
	case <-e.found:
	case <-time.After(20 * time.Millisecond):
	}
}
