package charset

import (
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

func TestCharsetOfText(t *testing.T) {
	for _, c := range []struct{ value, added, forced string }{
		{"text/html", "text/html; charset=GBK", "text/html; charset=GBK"},
		{"Text/HTML ", "Text/HTML; charset=GBK", "Text/HTML; charset=GBK"},
		{"text/plain;", "text/plain; charset=GBK", "text/plain; charset=GBK"},
		{"text/plain; format=flowed", "text/plain; format=flowed; charset=GBK", "text/plain; format=flowed; charset=GBK"},
		{"text/html; charset=utf-8", "text/html; charset=utf-8", "text/html; charset=GBK"},
		{"text/html;CHARSET=\"utf-8\"", "text/html;CHARSET=\"utf-8\"", "text/html; charset=GBK"},
		{"text/html ; charset=utf-8 ; a=b", "text/html ; charset=utf-8 ; a=b", "text/html; charset=GBK; a=b"},
		{"text/html; a=\"x; charset=y\"", "text/html; a=\"x; charset=y\"; charset=GBK", "text/html; a=\"x; charset=y\"; charset=GBK"},
		{"text/html; a=\"x\\\"; charset=y\"", "text/html; a=\"x\\\"; charset=y\"; charset=GBK", "text/html; a=\"x\\\"; charset=y\"; charset=GBK"},
		{"text/html; a=\"x", "text/html; a=\"x", "text/html; a=\"x"},
		{"text/html; charset", "text/html; charset; charset=GBK", "text/html; charset; charset=GBK"},
		{"application/javascript", "application/javascript; charset=GBK", "application/javascript; charset=GBK"},
		{"application/json", "application/json; charset=GBK", "application/json; charset=GBK"},
		{"application/xml", "application/xml; charset=GBK", "application/xml; charset=GBK"},
		{"application/ld+json", "application/ld+json", "application/ld+json"},
		{"image/svg+xml", "image/svg+xml", "image/svg+xml"},
		{"texts/x", "texts/x", "texts/x"},
		{"", "", ""},
	} {
		if got := (&settings{"; charset=GBK", false}).applied(c.value); got != c.added {
			t.Errorf("%q: %q", c.value, got)
		}
		if got := (&settings{"; charset=GBK", true}).applied(c.value); got != c.forced {
			t.Errorf("%q, forced: %q", c.value, got)
		}
	}
}

func TestCompileRefusesWhatIsNoName(t *testing.T) {
	for name, good := range map[string]bool{"": true, "utf-8": true, "SHIFT_JIS": true, "a b": false, "x;y": false, "x\r\n": false} {
		s, err := compile(nil, "", &configv1.SiteContent{Charset: name})
		if (err == nil) != good || (s != nil) != (good && name != "") {
			t.Errorf("%q: %v %v", name, s, err)
		}
	}
}

func FuzzApplied(f *testing.F) {
	f.Add("text/html; charset=utf-8; a=\"b\"")
	f.Fuzz(func(t *testing.T, value string) {
		s := &settings{"; charset=utf-8", true}
		if once := s.applied(value); s.applied(once) != once {
			t.Errorf("%q becomes %q, then %q", value, once, s.applied(once))
		}
	})
}
