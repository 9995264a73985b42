package bodies

import (
	"strings"
	"testing"
)

// Rules see what is surely harmless in an article as text, and everything else of it as it is.
func TestMarkupThatRulesSee(t *testing.T) {
	for in, want := range map[string]string{
		`a < b`:                         `a < b`,
		`<p>x</p>`:                      `<p>x</p>`,
		`<p style="color: #f00">x</p>`:  `<p> color: #f00 x</p>`,
		`<p class='a' style='top:1px'>`: `<p class='a'> top:1px `,
		`<span style="font-family: &quot;Yu Gothic&quot;, 微软雅黑; color: rgb(1, 2, 3)">x`: `<span> font-family: Yu Gothic, 微软雅黑; color: rgb(1, 2, 3) x`,
		`x<img alt="y" src="/a.png" />z`:                   `x[img alt="y"] /a.png z`,
		`<img src="data:image/png;base64,aGk=">`:           `[img] `,
		`<video controls src="https://a.b/c.mp4"></video>`: `[video controls] https://a.b/c.mp4 </video>`,
		`<!-- wp:image {"id":4} --><!-- /wp:image -->`:     ` wp:image x id  /wp:image `,
		`<!-- prettier-ignore-start -->`:                   `  prettier-ignore-start  `,
		`<!-- don't and/or, no_undef -->`:                  `  don't and/or, no_undef  `,
	} {
		if got := readMarkup(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	for _, in := range []string{
		`<p style="color:expression(alert(1))">`, `<p style="background:url(javascript:alert(1))">`, `<p style="x:\65xpression(1)">`, `<p style="a:b(1)">`,
		`<p style=color:red onclick=alert(1)>`, `<p style="color:red" onclick="alert(1)">`, `<p style="color:red"onclick=alert(1)>`,
		`<img src=x onerror=alert(1)>`, `<img src="x" onerror="alert(1)">`, `<img src="javascript:alert(1)">`, `<img src="java&#115;cript:alert(1)">`,
		`<img src="data:image/svg+xml;base64,aGk=">`, `<img src="/a" src="javascript:x">`, `<a style="top:1px" href="javascript:alert(1)">`,
		`<script style="top:1px">`, `<svg style="top:1px">`, `<p style="top:1px" x`, `<p style="top:1px`, `<!-- wp:x --!>`, `<!-- wp:x <script> -->`,
		`<!-- x`, `<!-- x=y -->`, `<!-- 'x' -->`, `<!---x-->`, `<!-- <b -->`, `<!--[if IE]-->`, `<!-- wp:x -- y -->`, `<iframe src="https://a.b/">`, "<img src=`/a`>", `<p style="top:1px" / onclick=x>`,
	} {
		if got := readMarkup(in); got != in {
			t.Errorf("%s: %q", in, got)
		}
	}
}

// Of a document of GraphQL rules see strings and comments, and everything else as it is.
func TestTextsOfGraphQL(t *testing.T) {
	for in, want := range map[string]string{
		`{ user(id: 1) { name } }`: "",
		`query Q($a: [Int!]! = [1, -2.5e3] @d, $b: T = {c: "x"}) @e(f: $a) { g: h(i: {j: [ENUM, null, true]}) @k ...F ... on T { u } ... @l { m } }`: "x",
		"# select\nfragment F on T { a(b: \"\\u0027 or\") c(d: \"\"\"e\nf\"\"\") }":                                                                  " select\n' or\ne\nf",
		`mutation($a: X) { b } subscription { c }`:                                                                                                   "",
	} {
		if got, ok := graphQLTexts(in); !ok || got != want {
			t.Errorf("%s: %q %v", in, got, ok)
		}
	}
	for _, in := range []string{
		``, `#`, `{}`, `{ a`, `{ a } }`, `{ a } x`, `1 union select`, `{ a(b) }`, `{ a(b: ) }`, `{ a: }`, `{ a(b: 1x) }`, `{ a(b: "c) }`, "{ a(b: \"c\nd\") }",
		`{ a; b }`, `{ a(b: 'c') }`, `query { $a }`, `query Q(a: Int) { b }`, `fragment on T { a }`, `{ "$where": 1 }`, `{{7*7}}`, `{ a(b: """c) }`,
		strings.Repeat("{ a ", 70) + strings.Repeat("}", 70), `{ a(b: ` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `) }`,
	} {
		if got, ok := graphQLTexts(in); ok {
			t.Errorf("%s: %q", in, got)
		}
	}
}
