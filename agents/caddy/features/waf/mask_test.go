package waf

import (
	"strings"
	"testing"
	"unicode/utf8"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestMaskedValues(t *testing.T) {
	for value, want := range map[string]string{
		"": "",
		"1' OR '1'='1' UNION SELECT pw FROM users":   "0' or '0'='0' union select xx from xxxxx",
		"<img src=x onerror=alert(document.cookie)>": "<img src=x onerror=alert(document.xxxxxx)>",
		"Ada O'Brien, ada@example.com":               "xxx x'xxxxx, xxx@xxxxxxx.xxx",
		"4111111111111111 \t\n 12":                   "00000000 00",
		"王小明-用户":                                     "xxx-xx",
		"Order42 selected":                           "order00 xxxxxxxx",
		"a\xff\x00b":                                 "xxxx",
		strings.Repeat("';", 100):                    strings.Repeat("';", 32),
	} {
		got := masked(value)
		if got != want {
			t.Errorf("%q is %q, not %q", value, got, want)
		}
		if utf8.RuneCountInString(got) > maxMasked {
			t.Errorf("%q has %d characters", got, utf8.RuneCountInString(got))
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("1' or 1=1", "Matched Data: or found within ARGS:a: 1' or 1=1")
	f.Add("é\xff", "Matched Data: \xff found within ")
	f.Fuzz(func(t *testing.T, value, told string) {
		got := masked(around(value, told))
		if len(got) > maxMasked || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			t.Errorf("%q", got)
		}
		for _, w := range strings.FieldsFunc(got, func(r rune) bool { return !isLetter(r) }) {
			if strings.Trim(w, "x") != "" && !readable[w] && len(got) < maxMasked {
				t.Errorf("%q can be read in %q", w, got)
			}
		}
	})
}

func TestThePieceThatMatchedIsTold(t *testing.T) {
	far := strings.Repeat("word ", 300) + "<script>"
	if got := around(far, "Matched Data: <script found within ARGS:a: "+far); !strings.HasSuffix(got, "<script>") || len(got) > 32 {
		t.Errorf("%q", got)
	}
	for _, told := range []string{"", "Matched Data: s&1 found within ARGS:a: x", "Matched Data: word"} {
		if got := around(far, told); got != far[:maxAround] {
			t.Errorf("%q: %q", told, got)
		}
	}
}

// Values leave a node for sites that want it, and neither of cookies nor of secrets.
func TestValuesThatAreTold(t *testing.T) {
	const attack = "1'+or+'1'='1'+union+select+pw+from+users"
	plain := settingsOf(t, asIs)
	told := settingsOf(t, func(m *configv1.SiteWaf) { m.EventValues = true })
	for _, c := range []struct {
		target string
		fields []string
		told   bool
	}{
		{"/?q=" + attack, nil, true},
		{"/?user.newPassword=" + attack, nil, false},
		{"/?api_key=" + attack, nil, false},
		{"/?key=" + attack, nil, false},
		{"/?keyword=" + attack, nil, true},
		{"/", []string{"Cookie: q=" + attack}, false},
		{"/", []string{"Referer: <script>alert(1)</script>"}, true},
		{"/", []string{"X-Auth-Token: () { :; }; echo"}, false},
	} {
		if v := judge(t, plain, asked("GET", c.target, "", c.fields...), ""); len(v.matches) == 0 || valuesOf(v) != "" {
			t.Errorf("%s %q: %v where none is wanted", c.target, c.fields, v.matches)
		}
		v := judge(t, told, asked("GET", c.target, "", c.fields...), "")
		if value := valuesOf(v); (value != "") != c.told || strings.Contains(value, "users") {
			t.Errorf("%s %q: %v", c.target, c.fields, v.matches)
		}
	}
}

func valuesOf(v verdict) (all string) {
	for _, m := range v.matches {
		all += m.Value
	}
	return all
}
