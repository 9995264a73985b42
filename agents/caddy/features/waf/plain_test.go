//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"

	"edge.svc/caddy/features/waf/bodies"
)

// What is harmless by its form hides nothing beside it, and nothing that only resembles it.
func TestAttacksInWhatIsHarmless(t *testing.T) {
	s := settingsOf(t, asIs)
	const graphQL, report = "Content-Type: application/graphql", "Content-Type: application/csp-report"
	many := strings.Repeat(`"a":"b",`, bodies.MaxArguments)
	call := "1 or current_user() = 'a'"
	file := func(name string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" + name + "\"\r\n\r\nx\r\n--b--\r\n"
	}
	operations := func(document string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + document + "\r\n--b--\r\n"
	}
	for _, c := range []struct {
		name, target, body string
		fields             []string
		attack             bool
	}{
		{name: "GraphQL", body: `{"query":"{ user(id: 1) { node { id } } }"}`, fields: []string{json}},
		{name: "SQL in GraphQL", body: `{"query":"{ user(id: \"1' union select password from users--\") { id } }"}`, fields: []string{json}, attack: true},
		{name: "a script in GraphQL", body: `{"query":"{ user(id: \"<script>alert(1)</script>\") { id } }"}`, fields: []string{json}, attack: true},
		{name: "SQL in a comment of GraphQL", body: "{ a } # 1' or '1'='1' union select password from users", fields: []string{graphQL}, attack: true},
		{name: "GraphQL as it is", body: "query { user(id: 1) { node { id } } }", fields: []string{graphQL}},
		{name: "SQL in the place of GraphQL", body: `{"query":"` + call + `"}`, fields: []string{json}, attack: true},
		{name: "SQL in the place of GraphQL as it is", body: call, fields: []string{graphQL}, attack: true},
		{name: "SQL beside GraphQL", body: `{"query":"{ user(id: 1) }","query":"` + call + `"}`, fields: []string{json}, attack: true},
		{name: "GraphQL beyond the limit", body: "{" + many + `"query":"{ user(id: 1) }"}`, fields: []string{json}},
		{name: "SQL beyond the limit", body: "{" + many + `"query":"` + call + `"}`, fields: []string{json}, attack: true},
		{name: "GraphQL in a query", target: "/?query=" + url.QueryEscape(`{ user(id: 1) { id } }`)},
		{name: "SQL in a query", target: "/?query=" + url.QueryEscape(`{ user(id: 1) }`) + "&query=" + url.QueryEscape(call), attack: true},
		{name: "GraphQL with files", body: operations(`{"query":"mutation($f: Upload!) { user(file: $f) { id } }","variables":{"f":null}}`), fields: []string{multipartB}},
		{name: "SQL beside files", body: operations(`{"query":"{ user(id: 1) }","variables":{"f":"` + call + `"}}`), fields: []string{multipartB}, attack: true},
		{name: "an image", body: `{"image":"data:image/png;base64,aGk7YmFzZTY0LA=="}`, fields: []string{json}},
		{name: "an image with code", body: `{"image":"data:image/svg+xml;base64,PHN2Zz4="}`, fields: []string{json}, attack: true},
		{name: "the beginning of a script", body: `{"csp-report":{"script-sample":"document.cookie='a';alert(1)"}}`, fields: []string{report}},
		{name: "all of a script", body: `{"csp-report":{"script-sample":"` + strings.Repeat(" ", 40) + `document.cookie='a';alert(1)"}}`, fields: []string{report}, attack: true},
		{name: "a script in another body", body: `{"csp-report":{"script-sample":"document.cookie='a';alert(1)"}}`, fields: []string{json}, attack: true},
		{name: "another part of a report", body: `{"csp-report":{"blocked-uri":"` + call + `"}}`, fields: []string{report}, attack: true},
		{name: "a file with an apostrophe", body: file("écran d'accueil.png"), fields: []string{multipartB}},
		{name: "a file with a quote", body: file("a'; x='b.png"), fields: []string{multipartB}, attack: true},
		{name: "another method", body: "{}", fields: []string{json, "X-Http-Method-Override: PUT"}},
		{name: "a method that the site does not take", body: "{}", fields: []string{json, "X-Http-Method-Override: TRACE"}, attack: true},
		{name: "several methods", body: "{}", fields: []string{json, "X-Http-Method-Override: PUT", "X-Http-Method-Override: TRACE"}, attack: true},
		{name: "a piece of a file", body: file("a"), fields: []string{multipartB, "Content-Range: bytes 0-1/2"}},
		{name: "a piece of a form", body: "a=b", fields: []string{form, "Content-Range: bytes 0-1/2"}, attack: true},
		{name: "a piece of something", body: file("a"), fields: []string{multipartB, "Content-Range: x"}, attack: true},
		{name: "options of OData", target: "/?$filter=a&$top=1&$orderby=b"},
		{name: "an operator in a name", target: "/?a[$ne]=1", attack: true},
		{name: "a counter of visitors", fields: []string{`Cookie: mp_0123abcd_mixpanel=%7B%22%24initial_referrer%22%3A%22%22%7D`}},
		{name: "an operator in a cookie", fields: []string{`Cookie: a=%7B%22%24ne%22%3A%22%22%7D`}, attack: true},
		{name: "Chinese in elements", body: "q=" + url.QueryEscape("<b>刾</b>刾>"), fields: []string{form}},
		{name: "elements of other bytes", body: "q=%BCscript%BEalert(1)%BC/script%BE", fields: []string{form}, attack: true},
		{name: "the same bytes, as characters", body: "q=%C2%BCscript%C2%BEalert(1)", fields: []string{form}, attack: true},
		{name: "letters with these bytes", body: "q=" + url.QueryEscape("мscriptоalert(¢XSS¢)м/scriptо"), fields: []string{form}, attack: true},
		{name: "a unit with these bytes", body: "q=" + url.QueryEscape("5 м/с, около 10 м/с, 3 μs <b>może</b> że Ž>"), fields: []string{form}},
		{name: "letters that have these bytes", body: "q=" + url.QueryEscape("Новый <a href=\"/a\">формат</a> и für Ž script o"), fields: []string{form}},
		{name: "a character as GBK", body: "q=%8A%D1&n=%D2%BB%8A%D1+1", fields: []string{"Content-Type: application/x-www-form-urlencoded; charset=gbk"}},
		{name: "a character", body: "q=" + url.QueryEscape("娧") + "&n=%u5A27", fields: []string{form}},
	} {
		method := "GET"
		if c.body != "" {
			method = "POST"
		}
		x := asked(method, "/", c.body, c.fields...)
		if c.target != "" {
			x.In.Target.Raw = c.target
			_, x.In.Target.Query, _ = strings.Cut(c.target, "?")
		}
		if v := judge(t, s, x, c.body); (v.score >= s.threshold) != c.attack {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// The fields that are restricted are those of the rule set.
func TestRestrictedFieldsAreThoseOfTheRuleSet(t *testing.T) {
	content, err := fs.ReadFile(coreruleset.FS, rulesFolder+"/REQUEST-901-INITIALIZATION.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(string(content), "'"), "tx.restricted_headers_basic="+restrictedHeaders) {
		t.Error("the rule set has others")
	}
}

// A document of GraphQL so long that its pieces are joined is seen to its last byte.
func TestTheEndOfALongDocumentIsSeen(t *testing.T) {
	var given []string
	o := &rounds{body: look{in: strings.NewReader("{ a } # the end"), whole: true}, budget: takeBudget(maxPatternTime * time.Millisecond)}
	defer o.budget.giveBack()
	rules, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	o.rules, o.x, o.s = rules, asked("POST", "/", "x"), settingsOf(t, asIs)
	defer o.close()
	o.begin()
	post := bodies.Joined(func(_, value string) { given = append(given, value) })
	o.readRaw("application/graphql", post)
	if !strings.Contains(strings.Join(given, "\n"), "the end") {
		t.Errorf("%q", given)
	}
}
