package waf

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/waf/bodies"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

const (
	sqli       = "1' or '1'='1' union select password from users-- "
	xss        = `<script>alert(document.cookie)</script>`
	json       = "Content-Type: application/json"
	form       = "Content-Type: application/x-www-form-urlencoded"
	multipartB = "Content-Type: multipart/form-data; boundary=b"
)

// An attack is found wherever it hides in a body, and the same text without it passes.
func TestAttacksInBodies(t *testing.T) {
	s := settingsOf(t, asIs)
	var leaves, fields strings.Builder
	for i := range 300 {
		fmt.Fprintf(&leaves, `"k%d":"v%d",`, i, i)
		fmt.Fprintf(&fields, "k%d=v%d&", i, i)
	}
	deep := strings.Repeat(`{"a":`, 64)
	multipart := func(head, content string) string {
		return "--bound\r\n" + head + "\r\n\r\n" + content + "\r\n--bound--\r\n"
	}
	const multipartType = "Content-Type: multipart/form-data; boundary=bound"
	for _, c := range []struct {
		name, contentType, body string
		cut                     bool
		// What is not valid is an attack whatever it says.
		wrong bool
	}{
		{name: "a form", contentType: form, body: "q=@"},
		{name: "field 300", contentType: form, body: fields.String() + "q=@"},
		{name: "a cut form", contentType: form, body: "q=@", cut: true},
		{name: "JSON", contentType: json, body: `{"q":"@"}`},
		{name: "JSON with another name", contentType: "Content-Type: application/vnd.api+json", body: `{"q":"@"}`},
		{name: "leaf 300", contentType: json, body: "{" + leaves.String() + `"q":"@"}`},
		{name: "depth 65", contentType: json, body: deep + `{"q":"@"}` + strings.Repeat("}", 64)},
		{name: "the first of equal keys", contentType: json, body: `{"q":"@","q":"x"}`},
		{name: "the second of equal keys", contentType: json, body: `{"q":"x","q":"@"}`},
		{name: "truncated JSON", contentType: json, body: `{"q":"@`, wrong: true},
		{name: "JSON cut at the limit", contentType: json, body: `{"q":"@`, cut: true},
		{name: "malformed JSON", contentType: json, body: `{"a":1,,"q":"@"}`, wrong: true},
		{name: "XML", contentType: "Content-Type: text/xml", body: `<a><![CDATA[@]]></a>`},
		{name: "a field of several", contentType: multipartType, body: multipart(`Content-Disposition: form-data; name="q"`, "@")},
		{name: "a cut field of several", contentType: multipartType, body: "--bound\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n@", cut: true},
		{name: "no boundary", contentType: "Content-Type: multipart/form-data", body: multipart(`Content-Disposition: form-data; name="q"`, "@"), wrong: true},
		{name: "a field that some take for a file", contentType: multipartType, body: multipart(`Content-Disposition: form-data; name="q"; filename*=utf-8''x`, "@"), wrong: true},
	} {
		for text, attack := range map[string]bool{"hello there": false, sqli: true} {
			if !c.wrong || attack {
				in := text
				switch {
				case strings.Contains(c.contentType, "urlencoded"):
					in = url.QueryEscape(in)
				}
				v := judgeCut(t, s, asked("POST", "/", "x", c.contentType), strings.ReplaceAll(c.body, "@", in), !c.cut)
				byContent := slices.ContainsFunc(v.rules, func(id int) bool { return id/1000 == 942 })
				if (v.score >= 5) != attack || byContent != attack {
					t.Errorf("%s with %q: %v", c.name, text, v)
				}
			}
		}
	}
}

// Wherever an attack of any family is in JSON, valid or not, rules of that family find it.
func TestFamiliesOfAttacksInJSON(t *testing.T) {
	s := settingsOf(t, asIs)
	attacks := map[int]string{
		932: "; cat /etc/passwd", 933: "<?php system($_GET['c']); ?>", 934: "require('child_process').exec('id')", 941: xss, 942: sqli,
	}
	leaves := strings.Repeat(`"k":"v",`, 299)
	bodies := map[string]string{
		"leaf 300":                     "{" + leaves + `"q":"@"}`,
		"element 300":                  "[" + strings.Repeat(`"v",`, 299) + `"@"]`,
		"a name at 300":                "{" + leaves + `"@":1}`,
		"depth 65":                     strings.Repeat(`{"a":`, 64) + `{"q":"@"}` + strings.Repeat("}", 64),
		"depth 65 of arrays":           strings.Repeat("[", 65) + `"@"` + strings.Repeat("]", 65),
		"the first of equal keys":      `{"q":"@","q":"x"}`,
		"the second of equal keys":     `{"q":"x","q":"@"}`,
		"truncated":                    `{"a":"x","q":"@`,
		"truncated beyond leaf 300":    "{" + leaves + `"q":"@`,
		"malformed":                    `{"a":1,,"q":"@"}`,
		"malformed in a value":         `{"a":x,"q":"@"}`,
		"malformed beyond leaf 300":    "{" + leaves + `,"q":"@"}`,
		"after the end of a document":  `{"a":1}{"q":"@"}`,
		"escaped":                      `{"q":"@@"}`,
		"after a bracket of the wrong": `{"a":["x"},"q":"@"}`,
	}
	for family, attack := range attacks {
		quoted := strings.Trim(strconv.Quote(attack), `"`)
		var escaped strings.Builder
		for _, c := range attack {
			fmt.Fprintf(&escaped, `\u%04x`, c)
		}
		for name, body := range bodies {
			body = strings.ReplaceAll(strings.ReplaceAll(body, "@@", escaped.String()), "@", quoted)
			if edgetest.UnderRace && len(body) > len(leaves) {
				// The detector takes ten times as long.
				continue
			}
			// Cut at the limit of what is inspected it is no mistake.
			cuts := []bool{false, true}[:1+strings.Count(name, "truncated")]
			for _, cut := range cuts {
				v := judgeCut(t, s, asked("POST", "/", "x", json), body, !cut)
				if !slices.ContainsFunc(v.rules, func(id int) bool { return id/rulesInFamily == family }) || v.score < s.threshold {
					t.Errorf("%d, %s, cut %v: %v", family, name, cut, v)
				}
			}
		}
	}
}

// What is uploaded as a file is nobody's argument, its name is.
func TestFiles(t *testing.T) {
	s := settingsOf(t, asIs)
	body := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" + name + "\"\r\nContent-Type: text/plain\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	const contentType = "Content-Type: multipart/form-data; boundary=b"
	if v := judge(t, s, asked("POST", "/", "x", contentType), body("notes.txt", sqli)); v.score != 0 {
		t.Error(v)
	}
	if v := judge(t, s, asked("POST", "/", "x", contentType), body("shell.php", "x")); !slices.Contains(v.rules, 933110) {
		t.Error(v)
	}
}

// What a body is not said to be it is not read as.
func TestUnknownTypesAreNoForms(t *testing.T) {
	s := settingsOf(t, asIs)
	xssForm := "q=" + url.QueryEscape(xss)
	if v := judge(t, s, asked("POST", "/", "x", form), xssForm); v.score < 5 {
		t.Error(v)
	}
	if v := judge(t, s, asked("POST", "/", "x", "Content-Type: text/plain"), xssForm); v.score != 0 {
		t.Error(v)
	}
}

// The 300th argument of a query, and the 300th cookie, count.
func TestArgumentsBeyondTheLimit(t *testing.T) {
	s := settingsOf(t, asIs)
	if v := judge(t, s, asked("GET", "/?"+strings.Repeat("a=b&", 300)+"q="+url.QueryEscape(sqli), ""), ""); v.score < 5 {
		t.Error(v)
	}
	if v := judge(t, s, asked("GET", "/?"+strings.Repeat("a=b&", 300), ""), ""); v.score != 0 {
		t.Error(v)
	}
	if v := judge(t, s, asked("GET", "/", "", "Cookie: "+strings.Repeat("a=b; ", 300)+"q="+xss), ""); v.score < 5 {
		t.Error(v)
	}
	// A pass of the edge's own challenges is not inspected; what only has its name is.
	for value, attack := range map[string]bool{"v1.k1.c2VsZWN0.bWFj-_": false, xss: true, "v1." + xss: true} {
		if v := judge(t, s, asked("GET", "/", "", "Cookie: __ew_pass="+value), ""); (v.score >= 5) != attack {
			t.Errorf("%s: %v", value, v)
		}
	}
}

// What sites take that say nothing of it.
func TestWhatWorksByDefault(t *testing.T) {
	s := settingsOf(t, asIs)
	for _, c := range []struct{ method, contentType, body string }{
		{"PUT", json, `{"a":"b"}`},
		{"PATCH", "Content-Type: application/merge-patch+json", `{"a":"b"}`},
		{"DELETE", "", ""},
		{"POST", "Content-Type: text/plain;charset=UTF-8", "hello"},
		{"POST", "Content-Type: application/csp-report", `{"csp-report":{"blocked-uri":"inline"}}`},
		{"POST", "Content-Type: application/reports+json", `[{"type":"deprecation"}]`},
		{"POST", "Content-Type: application/graphql", `query { me { name } }`},
		{"POST", json, `{"query":"query Me($id: ID!) { member(id: $id) { name } }","variables":{"id":"7"}}`},
		{"POST", "Content-Type: application/x-www-form-urlencoded; charset=gbk", "q=%C4%FA%BA%C3"},
		{"POST", form, "q=" + url.QueryEscape("一個「娧」字")},
		{"POST", "Content-Type: application/x-www-form-urlencoded; charset=gbk", "q=%D2%BB%8A%D1&r=%8A%D1"},
		{"POST", form, "q=%8A%D1%D7%D6"},
		{"POST", form, "q=" + url.QueryEscape("l’été, “çà et là” – 100 €")},
	} {
		fields := []string{}
		if c.contentType != "" {
			fields = append(fields, c.contentType)
		}
		if v := judge(t, s, asked(c.method, "/", c.body, fields...), c.body); v.score != 0 {
			t.Errorf("%s %s %s: %v", c.method, c.contentType, c.body, v)
		}
	}
	only := settingsOf(t, func(m *configv1.SiteWaf) {
		m.Methods, m.ContentTypes, m.Charsets = []string{"GET"}, []string{"text/xml"}, []string{"utf-8"}
	})
	for _, c := range []struct {
		rule                int
		method, contentType string
	}{
		{911100, "PUT", "text/xml"}, {920420, "GET", "text/plain"}, {920480, "GET", "text/xml; charset=gbk"},
	} {
		if v := judge(t, only, asked(c.method, "/", "x", "Content-Type: "+c.contentType), "<a>x</a>"); !slices.Contains(v.rules, c.rule) {
			t.Errorf("%v: %v", c, v)
		}
	}
}

func TestExclusions(t *testing.T) {
	attack := "/search?q=" + url.QueryEscape(sqli)
	found := judge(t, settingsOf(t, asIs), asked("GET", attack, ""), "")
	if len(found.rules) == 0 {
		t.Fatal(found)
	}
	var sqlRules []int
	for _, id := range found.rules {
		if id/1000 == 942 {
			sqlRules = append(sqlRules, id)
		}
	}
	byTag := func(path string, prefix bool, part configv1.WafPart, name string) func(*configv1.SiteWaf) {
		return func(m *configv1.SiteWaf) {
			m.Exclusions = []*configv1.WafExclusion{{
				Rules: &configv1.WafExclusion_Tag{Tag: "attack-sqli"}, Path: path, PathPrefix: prefix, Part: part, Name: name,
			}}
		}
	}
	const argument, all = configv1.WafPart_WAF_PART_ARGUMENT, configv1.WafPart_WAF_PART_ALL
	list := `{"rows":[{"sql":"x"},{"sql":"` + sqli + `"}]}`
	many := strings.Repeat("a=b&", bodies.MaxArguments) + "a=b"
	const field = "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n"
	fields := strings.Repeat(field+"x\r\n", bodies.MaxArguments) + field + sqli + "\r\n--b--\r\n"
	for _, c := range []struct {
		name           string
		change         func(*configv1.SiteWaf)
		target, header string
		body           string
		silent         bool
	}{
		{"rules", func(m *configv1.SiteWaf) {
			for _, id := range sqlRules {
				m.ExcludedRules = append(m.ExcludedRules, uint32(id))
			}
		}, attack, "", "", true},
		{"a family", func(m *configv1.SiteWaf) { m.ExcludedFamilies = []uint32{942} }, attack, "", "", true},
		{"another family", func(m *configv1.SiteWaf) { m.ExcludedFamilies = []uint32{941} }, attack, "", "", false},
		{"a tag everywhere", byTag("", false, all, ""), attack, "", "", true},
		{"on the path", byTag("/search", false, argument, "Q"), attack, "", "", true},
		{"on another path", byTag("/searc", false, argument, "q"), attack, "", "", false},
		{"below a path", byTag("/sea", true, argument, "q"), attack, "", "", true},
		{"in another spelling of the path", byTag("/search", false, argument, "q"), "/%73earch" + attack[7:], "", "", false},
		{"below a path that some origins leave", byTag("/sea", true, argument, "q"), "/sea/..;/rch" + attack[7:], "", "", false},
		{"below a path that some origins read in another way", byTag("/sea", true, argument, "q"), "/sea/.;a/rch" + attack[7:], "", "", false},
		{"below a path with parameters", byTag("/sea", true, argument, "q"), "/sea/rch;v=1/a" + attack[7:], "", "", true},
		{"another argument", byTag("/search", false, argument, "p"), attack, "", "", false},
		{"the name of an argument", byTag("", false, argument, sqli), "/?" + url.QueryEscape(sqli) + "=1", "", "", true},
		{"a cookie", byTag("", false, configv1.WafPart_WAF_PART_COOKIE, "c"), "/", "Cookie: c=" + strings.ReplaceAll(sqli, ";", ""), "", true},
		{"a cookie is no argument", byTag("", false, argument, "c"), "/", "Cookie: c=" + sqli, "", false},
		{"indices", byTag("", false, argument, "json.rows.*.sql"), "/", json, list, true},
		{"one index", byTag("", false, argument, "json.rows.0.sql"), "/", json, list, false},
		{"an argument, and none beyond those of a query", byTag("", false, argument, "query"), "/?" + many + "&z=" + url.QueryEscape(sqli), "", "", false},
		{"nor of a form", byTag("", false, argument, "form"), "/", form, many + "&z=" + url.QueryEscape(sqli), false},
		{"nor of JSON", byTag("", false, argument, "json"), "/", json, `["` + strings.ReplaceAll(many, "&", `","`) + `","` + sqli + `"]`, false},
		{"nor of fields", byTag("", false, argument, "multipart"), "/", multipartB, fields, false},
		{"nor cookies", byTag("", false, configv1.WafPart_WAF_PART_COOKIE, "cookies"), "/", "Cookie: " + strings.ReplaceAll(many, "&", ";") + ";z=" + strings.ReplaceAll(sqli, ";", ""), "", false},
	} {
		s := settingsOf(t, c.change)
		fields := []string{}
		if c.header != "" {
			fields = append(fields, c.header)
		}
		method := "GET"
		if c.body != "" {
			method = "POST"
		}
		v := judge(t, s, asked(method, c.target, c.body, fields...), c.body)
		if silent := !slices.ContainsFunc(v.rules, func(id int) bool { return id/1000 == 942 }); silent != c.silent {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// A verdict is another one's as soon as anything is different that it follows from.
func TestKeysOfVerdicts(t *testing.T) {
	s := settingsOf(t, asIs)
	other := settingsOf(t, func(m *configv1.SiteWaf) { m.ExcludedRules = []uint32{942100} })
	key := func(s *settings, method, target string, fields ...string) verdictKey {
		return keyOf(asked(method, target, "", fields...), s)
	}
	keys := map[verdictKey]bool{}
	made := 0
	for _, k := range []verdictKey{
		key(s, "GET", "/"), key(other, "GET", "/"), key(s, "HEAD", "/"), key(s, "GET", "/?"), key(s, "GET", "/", "X-A: b"),
		key(s, "GET", "/", "X-A: b", "X-A: c"), key(s, "GET", "/", "X-A: bc"), key(s, "GET", "/", "X-Ab: c"),
	} {
		keys[k] = true
		made++
	}
	if len(keys) != made {
		t.Errorf("%d keys of %d requests", len(keys), made)
	}
	if key(s, "GET", "/", "X-A: b", "X-B: c") != key(s, "GET", "/", "X-B: c", "X-A: b") {
		t.Error("the order of fields matters")
	}
}

// What is kept of verdicts is bounded by what it takes, and what is used stays.
func TestVerdictsAreBounded(t *testing.T) {
	long := exchange.WAFMatch{Name: strings.Repeat("n", maxMatchName)}
	for _, v := range []verdict{{score: 7}, {score: 7, rules: make([]int, 60), matches: slices.Repeat([]exchange.WAFMatch{long}, maxMatches)}} {
		var c verdicts
		for i := range 3 * maxVerdictBytes / v.size() {
			c.put(verdictKey{byte(i), byte(i >> 8), byte(i >> 16)}, v)
			if got, ok := c.get(verdictKey{}); !ok || got.score != 7 {
				t.Fatalf("what is used is gone after %d", i)
			}
		}
		if kept := len(c.young) + len(c.old); kept*v.size() > 2*maxVerdictBytes || kept*v.size() < maxVerdictBytes/2 {
			t.Errorf("%d verdicts of %d bytes", kept, v.size())
		}
	}
}

// Once the time is over nothing matches, and the inspection fails.
func TestPatternsHaveAnEnd(t *testing.T) {
	operator, err := newRx(plugintypes.OperatorOptions{Arguments: "a"})
	if err != nil {
		t.Fatal(err)
	}
	b := takeBudget(time.Nanosecond)
	defer b.giveBack()
	tx := fakeTransaction{id: b.id}
	long := strings.Repeat("a", measuredBytes)
	if !operator.Evaluate(tx, long) || !b.over {
		t.Errorf("the first look: over %v", b.over)
	}
	if operator.Evaluate(tx, long) {
		t.Error("matches beyond the end")
	}
	b.left, b.over = time.Nanosecond, false
	for range sampledCalls {
		operator.Evaluate(tx, "a")
	}
	if !b.over {
		t.Error("short values are free")
	}
}

type fakeTransaction struct {
	plugintypes.TransactionState
	id string
}

func (f fakeTransaction) ID() string      { return f.id }
func (f fakeTransaction) Capturing() bool { return false }

func (f fakeTransaction) CaptureField(int, string) {}

// What others computed meanwhile is not the inspection's time.
func TestTimeThatPassesWithoutComputingEndsNothing(t *testing.T) {
	const most = 20 * time.Millisecond
	b := takeBudget(most)
	defer b.giveBack()
	if b.spend(time.Hour); b.over {
		t.Error("over without computing")
	}
	for computed()-b.begun <= most {
	}
	if b.spend(time.Hour); !b.over {
		t.Error("goes on beyond what it may compute")
	}
}

// A pattern is compiled once for all requests: the one that wants it first does not pay for it.
func TestCompilingIsNoRequestsTime(t *testing.T) {
	const most = 20 * time.Millisecond
	b := takeBudget(most)
	defer b.giveBack()
	compute := func() {
		for from := computed(); computed()-from <= 2*most; {
		}
	}
	if b.excuse(compute); b.exceeded() {
		t.Error("over before it computed anything")
	}
	b.measure()
	if b.excuse(compute); b.exceeded() {
		t.Error("over by what it is not to blame for")
	}
	if compute(); !b.exceeded() {
		t.Error("goes on beyond what it may compute")
	}
}
