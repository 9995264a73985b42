package freshness

import (
	"net/http"
	"testing"
	"time"
)

func TestConditionsByRFC9110Section13(t *testing.T) {
	stored := fields(`Etag: W/"a,b"`, "Last-Modified: "+stamp(-100*s), "Date: "+stamp(0))
	for _, c := range []struct {
		says    string
		request http.Header
		want    bool
	}{
		{"without a condition", fields(), false},
		{"13.1.2: weak comparison", fields(`If-None-Match: "x", "a,b"`), true},
		{"13.1.2: several lines", fields(`If-None-Match: "x"`, `If-None-Match: W/"a,b"`), true},
		{"13.1.2: *", fields("If-None-Match: *"), true},
		{"13.1.2: another tag", fields(`If-None-Match: "a"`), false},
		{"13.1.2: a tag without quotes", fields("If-None-Match: a,b"), false},
		{"13.1.3: If-None-Match counts before the date", fields(`If-None-Match: "x"`, "If-Modified-Since: "+stamp(0)), false},
		{"13.1.3: the same date", fields("If-Modified-Since: " + stamp(-100*s)), true},
		{"13.1.3: a later date", fields("If-Modified-Since: " + stamp(0)), true},
		{"13.1.3: an earlier date", fields("If-Modified-Since: " + stamp(-101*s)), false},
		{"13.1.3: no date", fields("If-Modified-Since: x"), false},
	} {
		if got := NotModified(c.request, stored, now); got != c.want {
			t.Errorf("%s: %v", c.says, got)
		}
	}
	if !NotModified(fields("If-Modified-Since: "+stamp(0)), fields("Date: "+stamp(-s)), now) || !NotModified(fields("If-Modified-Since: "+stamp(0)), fields(), now) {
		t.Error("Date, or the time of the response, stands for Last-Modified")
	}
	r := fields("If-Match: x", "Range: bytes=0-1", "If-Modified-Since: y", "If-Range: z", "Accept: a")
	SetConditions(r, stored)
	if len(r) != 3 || r.Get("If-None-Match") != `W/"a,b"` || r.Get("If-Modified-Since") != stamp(-100*s) {
		t.Errorf("a validation asks %v", r)
	}
}

func TestRangesByRFC9110Section14(t *testing.T) {
	stored := fields(`Etag: "a"`, "Last-Modified: "+stamp(-100*s), "Date: "+stamp(0))
	weak := fields(`Etag: W/"a"`, "Last-Modified: "+stamp(-30*s), "Date: "+stamp(0))
	for _, c := range []struct {
		says            string
		request, stored http.Header
		want            RangeResult
		from, length    int64
	}{
		{"from the beginning", fields("Range: bytes=0-9"), stored, Partial, 0, 10},
		{"units have no case", fields("Range: Bytes=5-"), stored, Partial, 5, 95},
		{"beyond the end", fields("Range: bytes=90-200"), stored, Partial, 90, 10},
		{"the last bytes", fields("Range: bytes=-5"), stored, Partial, 95, 5},
		{"more than there are", fields("Range: bytes=-500"), stored, Partial, 0, 100},
		{"a number of any size", fields("Range: bytes=0-99999999999999999999"), stored, Partial, 0, 100},
		{"14.1.2: after the end", fields("Range: bytes=100-"), stored, Unsatisfiable, 0, 0},
		{"14.1.2: the last 0", fields("Range: bytes=-0"), stored, Unsatisfiable, 0, 0},
		{"14.1.1: the end before the beginning", fields("Range: bytes=9-5"), stored, Whole, 0, 100},
		{"14.2: several ranges", fields("Range: bytes=0-1,5-6"), stored, Whole, 0, 100},
		{"another unit", fields("Range: lines=0-1"), stored, Whole, 0, 100},
		{"no number", fields("Range: bytes=a-b"), stored, Whole, 0, 100},
		{"13.1.5: the strong tag", fields("Range: bytes=0-9", `If-Range: "a"`), stored, Partial, 0, 10},
		{"13.1.5: another tag", fields("Range: bytes=0-9", `If-Range: "b"`), stored, Whole, 0, 100},
		{"13.1.5: a weak tag", fields("Range: bytes=0-9", `If-Range: W/"a"`), weak, Whole, 0, 100},
		{"13.1.5: the date", fields("Range: bytes=0-9", "If-Range: "+stamp(-100*s)), stored, Partial, 0, 10},
		{"13.1.5: another date", fields("Range: bytes=0-9", "If-Range: "+stamp(-99*s)), stored, Whole, 0, 100},
		{"8.8.2.2: a date that is no strong validator", fields("Range: bytes=0-9", "If-Range: "+stamp(-30*s)), weak, Whole, 0, 100},
	} {
		got, result := RangeOf(c.request, c.stored, 100, now)
		if result != c.want || got.From != c.from || got.Length != c.length {
			t.Errorf("%s: %v %v", c.says, got, result)
		}
	}
	if got := string(Range{5, 10}.AppendContentRange(nil, 100)); got != "bytes 5-14/100" {
		t.Error(got)
	}
}

func TestUpdatesByRFC9111Section434(t *testing.T) {
	stored := fields(`Etag: "a"`, "Last-Modified: "+stamp(-100*s), "Content-Type: text/html", "Age: 9", "X: 1", "Y: 1")
	for _, c := range []struct {
		says   string
		update http.Header
		want   bool
	}{
		{"the same strong tag", fields(`Etag: "a"`), true},
		{"another strong tag", fields(`Etag: "b"`), false},
		{"a weak tag that agrees", fields(`Etag: W/"a"`), true},
		{"a weak tag that does not", fields(`Etag: W/"b"`), false},
		{"the same date", fields("Last-Modified: " + stamp(-100*s)), true},
		{"another date", fields("Last-Modified: " + stamp(0)), false},
		{"no validator", fields("X: 2"), true},
	} {
		if got := Updates(stored, c.update); got != c.want {
			t.Errorf("%s: %v", c.says, got)
		}
	}
	h := Updated(stored, fields("X: 2", "Z: 3", "Content-Type: text/plain", "Content-Length: 0"))
	if h.Get("X") != "2" || h.Get("Y") != "1" || h.Get("Z") != "3" || h.Get("Content-Type") != "text/html" || h.Get("Age") != "" || h.Get("Content-Length") != "" {
		t.Errorf("3.2: %v", h)
	}
	for _, c := range []struct {
		says            string
		head            http.Header
		agrees, updates bool
	}{
		{"the same tag", fields(`Etag: "a"`, "Content-Length: 5"), true, true},
		{"another tag", fields(`Etag: "b"`), false, false},
		{"another length", fields(`Etag: "a"`, "Content-Length: 6"), false, false},
		{"no validator", fields("Content-Length: 5"), true, false},
	} {
		if agrees, updates := HeadAgrees(stored, c.head, "5"); agrees != c.agrees || updates != c.updates {
			t.Errorf("4.3.5: HEAD with %s: %v %v", c.says, agrees, updates)
		}
	}
}

func TestWhatIsStoredOfAHeader(t *testing.T) {
	v := Judge("GET", nil, 200, fields(`Cache-Control: max-age=5, private="x-a", no-cache=x-b`), &rule, now)
	h := Storable(fields("X-A: 1", "X-B: 1", "X-C: 1", "Transfer-Encoding: chunked", "Connection: close", "Content-Length: 1", "X-Svc-Y: 1", "Date: x"), &v)
	if len(h) != 2 || h.Get("X-C") == "" || h.Get("Date") == "" {
		t.Errorf("3.1: %v", h)
	}
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{{"POST", 200, true}, {"DELETE", 204, true}, {"M-SEARCH", 301, true}, {"POST", 404, false}, {"PUT", 500, false}, {"GET", 200, false}, {"OPTIONS", 200, false}} {
		if Invalidates(c.method, c.status) != c.want {
			t.Errorf("4.4: %s %d", c.method, c.status)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	h := fields("Cache-Control: public, max-age=3600", "Vary: Accept-Encoding", `Etag: "a"`)
	b.ReportAllocs()
	for b.Loop() {
		if v := Judge("GET", nil, 200, h, &rule, time.Time{}); !v.Store() {
			b.Fatal(v)
		}
	}
}
