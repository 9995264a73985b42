//go:build !race

// The race detector has nothing to see in one goroutine, and takes ten times as long.

package waf

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"

	"edge.svc/caddy/features/waf/bodies"
)

// An attack is found however much stands before it, also where one round ends and another begins; and so much ordinary text
// is none.
func TestAttacksAfterMuchText(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) {
		// These two look everywhere; the others only take time.
		m.ExcludedFamilies = []uint32{913, 920, 921, 922, 930, 931, 932, 933, 934, 941, 943}
	})
	escaped := url.QueryEscape(sqli)
	const java = " java.lang.ProcessBuilder "
	words := func(bytes int) string { return strings.Repeat("word ", bytes/5+1)[:bytes] }
	plus := func(bytes int) string { return strings.ReplaceAll(words(bytes), " ", "+") }
	many := func(piece string, bytes int) string { return strings.Repeat(piece, bytes/len(piece)) }
	part := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	xml := "Content-Type: text/xml"
	for name, c := range map[string]struct {
		contentType string
		body        func(padding int, attack bool) string
		family      int
	}{
		"a field of a form": {form, func(n int, attack bool) string { return "q=" + plus(n) + when(attack, escaped) + "&b=1" }, 942},
		"fields of a form":  {form, func(n int, attack bool) string { return many("a=word+word&", n) + when(attack, "q="+escaped) }, 942},
		"a form's own text": {form, func(n int, attack bool) string { return "q=" + plus(n) + when(attack, url.QueryEscape(java)) }, 944},
		"a string of JSON":  {json, func(n int, attack bool) string { return `{"q":"` + words(n) + when(attack, sqli) + `"}` }, 942},
		"strings of JSON": {json, func(n int, attack bool) string {
			return "[" + many(`"word word",`, n) + `"` + when(attack, sqli) + `"]`
		}, 942},
		"JSON of no type": {"", func(n int, attack bool) string { return `{"q":"` + words(n) + when(attack, sqli) + `"}` }, 942},
		"documents of no type": {"", func(n int, attack bool) string {
			return many(`{"q":"word word"} `, n) + `{"q":"` + when(attack, sqli) + `"}`
		}, 942},
		"text of no type": {"", func(n int, attack bool) string { return words(n) + when(attack, java) }, 944},
		"a field of several": {multipartB, func(n int, attack bool) string {
			return part("a", words(n)+when(attack, sqli)) + "--b--\r\n"
		}, 942},
		"fields of several": {multipartB, func(n int, attack bool) string {
			return many(part("a", words(1000)), n) + part("q", when(attack, sqli)) + "--b--\r\n"
		}, 942},
		"a text of XML": {xml, func(n int, attack bool) string { return "<a>" + words(n) + when(attack, sqli) + "</a>" }, 942},
		"texts of XML": {xml, func(n int, attack bool) string {
			return "<a>" + many("<b>word word</b>", n) + when(attack, sqli) + "</a>"
		}, 942},
		"a value of XML": {xml, func(n int, attack bool) string { return `<a b="` + words(n) + when(attack, java) + `"/>` }, 944},
	} {
		for _, padding := range []int{bodies.MaxValue - 20, 2*bodies.MaxValue + 12_345} {
			body := c.body(padding, true)
			v := judge(t, s, asked("POST", "/", body, fieldsOf(c.contentType)...), body)
			if !slices.ContainsFunc(v.rules, func(id int) bool { return id/1000 == c.family }) || v.score < s.threshold {
				t.Errorf("%s after %d bytes: %v", name, padding, v)
			}
		}
		body := c.body(maxRound+bodies.MaxValue, false)
		if v := judge(t, s, asked("POST", "/", body, fieldsOf(c.contentType)...), body); v.score != 0 {
			t.Errorf("%s without an attack: %v", name, v)
		}
	}
}

// fieldsOf is a field of a header, where there is one.
func fieldsOf(field string) []string {
	if field == "" {
		return nil
	}
	return []string{field}
}

func when(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}

// What the head weighs counts once, and what is found in each round together.
func TestRoundsAddUp(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) {
		m.ExcludedFamilies = []uint32{913, 920, 921, 922, 930, 931, 932, 933, 934, 943, 944}
	})
	text := strings.Repeat("word+", maxRound/5)
	score := func(target, body string) int { return judge(t, s, asked("POST", target, body, form), body).score }
	attack, other := url.QueryEscape(sqli), url.QueryEscape(xss)
	head, one, two := score("/?q="+attack, "a=b"), score("/", "q="+attack), score("/", "q="+other)
	if head == 0 || one == 0 || two == 0 {
		t.Fatal(head, one, two)
	}
	if got := score("/?q="+attack, "a="+text+"&b="+text); got != head {
		t.Errorf("the head alone: %d, and %d in several rounds", head, got)
	}
	if got := score("/?q="+attack, "q="+attack+"&a="+text+"&b="+text+"&q="+other); got != head+one+two {
		t.Errorf("%d of %d, %d and %d", got, head, one, two)
	}
}

// counted knows how much was read of it.
type counted struct {
	*strings.Reader
	bytes int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// The time of an inspection is that of all of it, whatever the body is: nothing is read any more once it is over.
func TestLongBodiesHaveAnEnd(t *testing.T) {
	s := settingsOf(t, asIs)
	shared, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	rules := *shared
	rules.patternTime = 20 * time.Millisecond
	const length = 32 << 20
	for name, c := range map[string]struct{ contentType, text string }{
		"a form": {form, "a=word+word&"}, "numbers of JSON": {json, "1234567890,"}, "text": {"Content-Type: text/plain", "word word "},
		"XML": {"Content-Type: text/xml", "<a>word</a>"}, "parts": {multipartB, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nword\r\n"},
	} {
		body := &counted{Reader: strings.NewReader("[" + strings.Repeat(c.text, length/len(c.text)))}
		_, err := rules.inspect(asked("POST", "/", "x", c.contentType), s, look{in: body, whole: true}, always)
		if err != errTime || body.bytes >= length/2 {
			t.Errorf("%s: %v after %d of %d bytes", name, err, body.bytes, length)
		}
	}
}
