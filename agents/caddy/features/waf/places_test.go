package waf

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/crstest"
	"edge.svc/caddy/internal/exchangetest"
)

var partNumbers = map[string]configv1.WafPart{
	"argument": configv1.WafPart_WAF_PART_ARGUMENT, "cookie": configv1.WafPart_WAF_PART_COOKIE, "header": configv1.WafPart_WAF_PART_HEADER,
}

func excludingAll(matches []exchange.WAFMatch) (list []*configv1.WafExclusion) {
	for _, m := range matches {
		if m.Part != "all" {
			list = append(list, &configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: uint32(m.Rule)}, Part: partNumbers[m.Part], Name: m.Name})
		}
	}
	return list
}

// An event names the argument, cookie or header that made a rule match, and each of them.
func TestEventsNameWhatMatched(t *testing.T) {
	strict := settingsOf(t, func(m *configv1.SiteWaf) { m.ParanoiaLevel, m.Methods = 4, []string{"GET", "POST"} })
	attack := url.QueryEscape(sqli)
	for _, c := range []struct {
		name, target, body string
		fields             []string
		rule               int
		// Parts and names, sorted.
		want []string
	}{
		{"a restricted header", "/", "", []string{"Lock-Token: <urn:a>", "X-A: b"}, 920450, []string{"header lock-token"}},
		{"two restricted headers", "/", "", []string{"Lock-Token: <urn:a>", "Proxy: b"}, 920450, []string{"header lock-token", "header proxy"}},
		{"a content type that is not allowed", "/", "x", []string{"Content-Type: text/csv", "X-A: b"}, 920420, []string{"header content-type"}},
		{"each argument", "/?a=" + attack + "&b=c&d=" + attack, "", nil, 942100, []string{"argument a", "argument d"}},
		{"fields of a form", "/", "a=" + attack + "&b=c", []string{form}, 942100, []string{"argument a"}},
		{"the URL of another host", "/?a=b&u=https%3A%2F%2Fexample.net%2Fa", "", nil, 931130, []string{"argument u"}},
		{"a function of PHP", "/?a=b&c=array_push(d)", "", nil, 933150, []string{"argument c"}},
		{"the identifier of a session", "/?a=b&phpsessid=1", "", []string{"Referer: https://example.net/"}, 943110, []string{"argument phpsessid"}},
		{"an argument twice", "/?a=b&c=1&c=2", "", nil, 921180, []string{"argument c"}},
		{"a body that cannot be read", "/", "{", []string{json}, 920130, []string{"all "}},
	} {
		method := "GET"
		if c.body != "" {
			method = "POST"
		}
		v := judge(t, strict, asked(method, c.target, c.body, c.fields...), c.body)
		var named []string
		for _, m := range v.matches {
			if m.Rule == c.rule {
				named = append(named, m.Part+" "+strings.ToLower(m.Name))
			}
		}
		slices.Sort(named)
		if !slices.Equal(named, c.want) {
			t.Errorf("%s: %q of %+v", c.name, named, v)
		}
	}
}

// Of many matches an event keeps each rule's first, and says how many there were.
func TestEventsKeepOneMatchOfEachRule(t *testing.T) {
	var query strings.Builder
	for i := range 40 {
		fmt.Fprintf(&query, "a%d=%s&", i, url.QueryEscape(sqli))
	}
	v := judge(t, settingsOf(t, asIs), asked("GET", "/?"+query.String()+"z="+url.QueryEscape(xss), ""), "")
	if len(v.matches) != maxMatches || v.seen < 2*maxMatches {
		t.Errorf("%d of %d", len(v.matches), v.seen)
	}
	for _, id := range v.rules {
		if !slices.ContainsFunc(v.matches, func(m exchange.WAFMatch) bool { return m.Rule == id }) {
			t.Errorf("none of %d", id)
		}
	}
}

// The points of the matches are the score, and an exclusion takes away those of its match.
func TestMatchesMakeUpTheScore(t *testing.T) {
	change := func(m *configv1.SiteWaf) { m.ParanoiaLevel = 4 }
	s := settingsOf(t, change)
	judgeRaw := func(s *settings, raw string) (v verdict, ok bool) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil || r.URL.Path == "" {
			return v, false
		}
		_, body, _ := strings.Cut(raw, "\r\n\r\n")
		r.RemoteAddr = "203.0.113.7:40000"
		return judge(t, s, exchangetest.New(httptest.NewRecorder(), r), body), true
	}
	all := crstest.All(t)
	tried := 0
	for i := 3; i < len(all); i += 40 {
		raw := all[i].Raw()
		v, ok := judgeRaw(s, raw)
		if !ok || v.seen > len(v.matches) {
			continue
		}
		points, left := 0, 0
		for _, m := range v.matches {
			points += m.Points
			if m.Part == "all" {
				left += m.Points
			}
		}
		if points != v.score {
			t.Errorf("%s: %d points of %+v", all[i].Name, points, v)
		}
		without, _ := judgeRaw(settingsOf(t, func(m *configv1.SiteWaf) {
			change(m)
			m.Exclusions = excludingAll(v.matches)
		}), raw)
		if without.score != left {
			t.Errorf("%s: %d left and not %d: %+v, then %+v", all[i].Name, without.score, left, v, without)
		}
		tried++
	}
	if tried < 50 {
		t.Errorf("%d requests", tried)
	}
}

// The head of a request counts once, however many rounds its body takes.
func TestMatchesOfTheHeadCountOnce(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.RequestBodyLimit = 1 << 20 })
	body := "a=" + strings.Repeat("b", maxRound) + "&c=" + strings.Repeat("d", maxRound) + "&e=f"
	target := "/?q=" + url.QueryEscape(xss)
	v := judge(t, s, asked("POST", target, body, form), body)
	points := 0
	for _, m := range v.matches {
		points += m.Points
	}
	if once := judge(t, s, asked("GET", target, ""), ""); points != v.score || v.score != once.score {
		t.Errorf("%+v and not %+v", v, once)
	}
}
