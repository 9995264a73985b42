package freshness

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

const s = time.Second

// control is a Control with some directives.
func control(change func(*Control)) Control {
	c := noControl()
	c.Present = true
	change(&c)
	return c
}

func TestCacheControlIsReadByRFC9111Section52(t *testing.T) {
	for _, c := range []struct {
		says  string
		lines []string
		want  Control
	}{
		{"names have no case", []string{"MaX-aGe=3, NO-store"}, control(func(c *Control) { c.MaxAge, c.NoStore = 3*s, true })},
		{"several lines are one list", []string{"public", "max-age=3"}, control(func(c *Control) { c.MaxAge, c.Public = 3*s, true })},
		{"both forms of an argument are accepted", []string{`max-age="3"`}, control(func(c *Control) { c.MaxAge = 3 * s })},
		{"of two values the first is used", []string{"max-age=3, max-age=2"}, control(func(c *Control) { c.MaxAge = 3 * s })},
		{"a directive inside a quoted string is none", []string{`a="b, max-age=3", no-cache`}, control(func(c *Control) { c.NoCache = true })},
		{"an escaped quote does not end the string", []string{`a="b\", no-store", public`}, control(func(c *Control) { c.Public = true })},
		{"a string without an end takes the rest", []string{`a="b, max-age=3`}, control(func(*Control) {})},
		{"invalid times are stale: a sign", []string{"max-age=-3"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"a decimal", []string{"max-age=3.0"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"letters after digits", []string{"max-age=3a"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"single quotes", []string{"max-age='3'"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"no value", []string{"max-age"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"a space after the equals sign", []string{"max-age= 3"}, control(func(c *Control) { c.MaxAge = 0 })},
		{"a space before it makes another name", []string{"max-age =3"}, control(func(*Control) {})},
		{"leading zeros are digits", []string{"max-age=003"}, control(func(c *Control) { c.MaxAge = 3 * s })},
		{"larger numbers are 2^31-1", []string{"max-age=99999999999999999999999"}, control(func(c *Control) { c.MaxAge = maxSeconds * s })},
		{"fields of no-cache", []string{`no-cache="a, set-cookie"`}, control(func(c *Control) { c.NoCacheFields = []string{"A", "Set-Cookie"} })},
		{"fields of private as a token", []string{"private=x-a"}, control(func(c *Control) { c.PrivateFields = []string{"X-A"} })},
		{"a list that is not valid forbids all", []string{`private="a b"`}, control(func(c *Control) { c.Private = true })},
		{"an empty list forbids all", []string{`no-cache=""`}, control(func(c *Control) { c.NoCache = true })},
		{"unknown directives are ignored", []string{"immutable, x=1"}, control(func(*Control) {})},
		{"empty members do not count", []string{" , ,max-age=3,,"}, control(func(c *Control) { c.MaxAge = 3 * s })},
		{"an empty field is missing", []string{""}, noControl()},
		{"the rest", []string{"s-maxage=1,proxy-revalidate,must-revalidate,must-understand,only-if-cached,stale-while-revalidate=2,stale-if-error=3,min-fresh=4,max-stale"},
			control(func(c *Control) {
				c.SMaxAge, c.StaleWhileRevalidate, c.StaleIfError, c.MinFresh, c.MaxStale = s, 2*s, 3*s, 4*s, maxSeconds*s
				c.ProxyRevalidate, c.MustRevalidate, c.MustUnderstand, c.OnlyIfCached = true, true, true, true
			})},
	} {
		if got := ParseControl(c.lines); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", c.says, got)
		}
	}
}

func TestCDNCacheControlIsReadByRFC9213(t *testing.T) {
	for _, c := range []struct {
		says, value string
		want        Control
		ok          bool
	}{
		{"integers", "max-age=3, s-maxage=4", control(func(c *Control) { c.MaxAge, c.SMaxAge = 3*s, 4*s }), true},
		{"parameters are ignored", `max-age=3;a;b="c"`, control(func(c *Control) { c.MaxAge = 3 * s }), true},
		{"the last of two counts", "max-age=3, max-age=4", control(func(c *Control) { c.MaxAge = 4 * s }), true},
		{"another type of value is stale", `max-age="3"`, control(func(c *Control) { c.MaxAge = 0 }), true},
		{"so is a decimal", "max-age=3.0", control(func(c *Control) { c.MaxAge = 0 }), true},
		{"and one below 0", "max-age=-3", control(func(c *Control) { c.MaxAge = 0 }), true},
		{"flags", "no-store, no-cache, private, public, must-revalidate", control(func(c *Control) {
			c.NoStore, c.NoCache, c.Private, c.Public, c.MustRevalidate = true, true, true, true, true
		}), true},
		{"a flag that is false is missing", "no-store=?0, public=?1", control(func(c *Control) { c.Public = true }), true},
		{"other types", `a=:YQ==:, b=(1 "x";q);r, c=tok/en, d=@1, public`, control(func(c *Control) { c.Public = true }), true},
		{"large numbers", "max-age=999999999999999", control(func(c *Control) { c.MaxAge = maxSeconds * s }), true},
		{"too large a number is not valid", "max-age=9999999999999999", noControl(), false},
		{"capitals are not valid", "Max-Age=3", noControl(), false},
		{"a space around the equals sign", "max-age =3", noControl(), false},
		{"letters after digits", "max-age=3a", noControl(), false},
		{"a comma at the end", "max-age=3,", noControl(), false},
		{"no directive", "", noControl(), false},
		{"a string without an end", `a="b`, noControl(), false},
	} {
		if got, ok := ParseTargeted([]string{c.value}); ok != c.ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v %v", c.says, got, ok)
		}
	}
}

func TestDatesAreReadByRFC9110Section567(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	want := time.Date(2050, 8, 18, 2, 1, 18, 0, time.UTC)
	for text, ok := range map[string]bool{
		"Thu, 18 Aug 2050 02:01:18 GMT":     true,
		"Thursday, 18-Aug-50 02:01:18 GMT":  true,
		"Thu Aug 18 02:01:18 2050":          true,
		"Thu, 18 Aug 2050 2:01:18 GMT":      false,
		"Thu, 18 Aug 2050 02:01:18 UTC":     false,
		"Thu, 18 Aug 2050 02:01:18 +0000":   false,
		"Thu, 18 aug 2050 02:01:18 GMT":     false,
		"Thu, 18  Aug 2050 02:01:18 GMT":    false,
		"Thu, 18-Aug-2050 02:01:18 GMT":     false,
		"18 Aug 2050 02:01:18 GMT":          false,
		"Thu, 18 Aug 2050 02:01:18.000 GMT": false,
		"Thu, 18 Aug 2050 02.01.18 GMT":     false,
		"0":                                 false,
		"":                                  false,
	} {
		if got, valid := date(text, now); valid != ok || ok && !got.Equal(want) {
			t.Errorf("%q: %v %v", text, got, valid)
		}
	}
	if got, ok := date("Friday, 18-Aug-78 02:01:18 GMT", now); !ok || got.Year() != 1978 {
		t.Errorf("a year of two digits, more than 50 years ahead: %v %v", got, ok)
	}
}

func TestAgeIsReadByRFC9111Section51(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7200": 7200 * s, "0, 7200": 0, "7200, 0": 7200 * s, "-7200": 0, "abc": 0, "7200.0": 0, "7200;a=b": 0, "": 0,
		"99999999999999": maxSeconds * s,
	} {
		if got := ageIn(http.Header{"Age": {value}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if got := ageIn(http.Header{"Age": {"0", "7200"}}); got != 0 {
		t.Errorf("two lines: %v", got)
	}
}

func FuzzCacheControl(f *testing.F) {
	for _, seed := range []string{`max-age=3, private="a, b"`, `no-cache="a\"b", s-maxage="4"`, "a;b=c, max-age=(1 2);x", `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		a := ParseControl([]string{value})
		for _, d := range []time.Duration{a.MaxAge, a.SMaxAge, a.StaleWhileRevalidate, a.StaleIfError, a.MinFresh, a.MaxStale} {
			if d < Absent || d > maxSeconds*s {
				t.Errorf("%q gives a time of %v", value, d)
			}
		}
		if b := ParseControl([]string{value, ""}); !reflect.DeepEqual(a, b) {
			t.Errorf("%q differs with an empty line", value)
		}
		if b := ParseControl([]string{value, "no-store"}); !b.NoStore {
			t.Errorf("%q hides a no-store of a line of its own", value)
		}
		if c, ok := ParseTargeted([]string{value}); !ok && c.Present || ok && strings.Trim(value, " ") == "" {
			t.Errorf("%q as a dictionary: %v", value, ok)
		}
		for _, name := range append(a.NoCacheFields, a.PrivateFields...) {
			if !isToken(name) {
				t.Errorf("%q gives the field %q", value, name)
			}
		}
		_, _ = date(value, time.Unix(0, 0))
		_ = matches([]string{value}, http.Header{"Etag": {`"a"`}})
		if r, result := RangeOf(http.Header{"Range": {value}}, http.Header{}, 100, time.Unix(0, 0)); result == Partial && (r.From < 0 || r.Length < 1 || r.From+r.Length > 100) {
			t.Errorf("%q gives the range %v", value, r)
		}
	})
}
