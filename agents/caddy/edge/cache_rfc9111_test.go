package edge

import "testing"

func TestFreshnessByRFC9111Section42(t *testing.T) {
	e := newCachingEdge(t, respecting)
	e.tell("/f", reuse([]reused{
		{says: "4.2.1: max-age", header: "Cache-Control: max-age=10", after: 9, word: "HIT"},
		{says: "4.2.1: max-age is over", header: "Cache-Control: max-age=10", after: 11, word: "EXPIRED"},
		{says: "4.2.1: max-age=0 without a validator", header: "Cache-Control: max-age=0", word: "MISS"},
		{says: "4.2.1: s-maxage counts before max-age", header: "Cache-Control: s-maxage=100, max-age=1", after: 50, word: "HIT"},
		{says: "4.2.1: also if it is shorter", header: "Cache-Control: max-age=100, s-maxage=1", after: 50, word: "EXPIRED"},
		{says: "4.2.1: s-maxage counts before Expires", header: "Cache-Control: s-maxage=100 | Expires: {-9}", after: 50, word: "HIT"},
		{says: "4.2.1: max-age counts before Expires", header: "Cache-Control: max-age=100 | Expires: {-9}", after: 50, word: "HIT"},
		{says: "4.2.1: max-age=0 counts before Expires", header: "Cache-Control: max-age=0 | Expires: {+900}", word: "MISS"},
		{says: "4.2.1: Expires", header: "Expires: {+60}", after: 30, word: "HIT"},
		{says: "4.2.1: Expires is over", header: "Expires: {+60}", after: 61, word: "EXPIRED"},
		{says: "4.2.1: Expires counts from Date", header: "Expires: {+60} | Date: {+30}", after: 40, word: "EXPIRED"},
		{says: "4.2.1: Expires without Date", header: "Expires: {+60} | Date: -", after: 30, word: "HIT"},
		{says: "5.3: Expires: 0 is of the past", header: "Expires: 0", word: "MISS"},
		{says: "5.3: Expires in the past", header: "Expires: {-9}", word: "MISS"},
		{says: "5.3: an invalid Expires is of the past, also beside directives", header: "Cache-Control: public | Expires: tomorrow", word: "MISS"},
		{says: "5.3: a date in the form of RFC 850", header: "Expires: Thursday, 18-Aug-50 02:01:18 GMT", word: "HIT"},
		{says: "5.3: a date in the form of asctime", header: "Expires: Thu Aug 18 02:01:18 2050", word: "HIT"},
		{says: "5.3: a year far ahead", header: "Expires: Thu, 18 Aug 9999 02:01:18 GMT", word: "HIT"},
		{says: "5.3: another time zone", header: "Expires: Thu, 18 Aug 2050 02:01:18 AEST", word: "MISS"},
		{says: "5.3: a wrong month", header: "Expires: Thu, 18 AUG 2050 02:01:18 GMT", word: "MISS"},
		{says: "5.3: two Expires", header: "Expires: {+60} | Expires: {+60}", word: "MISS"},
		{says: "4.2.1: an invalid time is stale: a decimal", header: "Cache-Control: max-age=3600.0", word: "MISS"},
		{says: "4.2.1: a sign", header: "Cache-Control: max-age=-3600", word: "MISS"},
		{says: "4.2.1: letters before digits", header: "Cache-Control: max-age=a3600", word: "MISS"},
		{says: "4.2.1: letters after digits", header: "Cache-Control: max-age=3600a", word: "MISS"},
		{says: "4.2.1: single quotes", header: "Cache-Control: max-age='3600'", word: "MISS"},
		{says: "4.2.1: without a value", header: "Cache-Control: max-age", word: "MISS"},
		{says: "5.2: quotes are accepted", header: `Cache-Control: max-age="3600"`, after: 9, word: "HIT"},
		{says: "5.2: names have no case", header: "Cache-Control: MaX-aGe=3600", after: 9, word: "HIT"},
		{says: "5.2: a space before the equals sign", header: "Cache-Control: max-age =3600", word: "MISS"},
		{says: "5.2: a space after the equals sign", header: "Cache-Control: max-age= 3600", word: "MISS"},
		{says: "5.2: a max-age inside of another directive's quotes", header: `Cache-Control: ext="a, max-age=3600"`, word: "MISS"},
		{says: "5.2: an escaped quote", header: `Cache-Control: ext="a\", no-store, b", max-age=3600`, after: 9, word: "HIT"},
		{says: "5.2.3: an unknown directive", header: "Cache-Control: foo, max-age=3600, bar=baz", after: 9, word: "HIT"},
		{says: "RFC 8246: immutable", header: "Cache-Control: max-age=3600, immutable", after: 9, word: "HIT"},
		{says: "5.2: empty members", header: "Cache-Control: ,, max-age=3600 ,", after: 9, word: "HIT"},
		{says: "5.2: several lines are one list", header: "Cache-Control: public | Cache-Control: max-age=3600", after: 9, word: "HIT"},
		{says: "4.2.1: of two values the first", header: "Cache-Control: max-age=1, max-age=3600", after: 9, word: "EXPIRED"},
		{says: "1.2.2: 2147483648", header: "Cache-Control: max-age=2147483648", after: 9, word: "HIT"},
		{says: "1.2.2: more than 64 bits", header: "Cache-Control: max-age=99999999999999999999", after: 9, word: "HIT"},
		{says: "1.2.2: leading zeros", header: "Cache-Control: max-age=0003600", after: 9, word: "HIT"},
		{says: "4.2.2: no lifetime is guessed where the response has Cache-Control", header: "Cache-Control: public | Last-Modified: {-9000000}", word: "MISS"},
		{says: "4.2.2: the TTL of the rule takes the place of a heuristic", header: "Last-Modified: {-9000000}", after: 3500, word: "HIT"},
		{says: "4.2.2: and ends", header: "Last-Modified: {-9000000}", after: 3601, word: "EXPIRED"},
		{says: "5.1: Age counts", header: "Cache-Control: max-age=100 | Age: 60", after: 50, word: "EXPIRED"},
		{says: "5.1: Age is more than the lifetime", header: "Cache-Control: max-age=100 | Age: 7200", after: 1, word: "EXPIRED"},
		{says: "5.1: the first member of a list", header: "Cache-Control: max-age=3600 | Age: 0, 7200", after: 1, word: "HIT"},
		{says: "5.1: of two lines the first", header: "Cache-Control: max-age=3600 | Age: 7200 | Age: 0", after: 1, word: "EXPIRED"},
		{says: "5.1: an invalid Age is ignored: below 0", header: "Cache-Control: max-age=3600 | Age: -7200", after: 1, word: "HIT"},
		{says: "5.1: letters", header: "Cache-Control: max-age=3600 | Age: abc", after: 1, word: "HIT"},
		{says: "5.1: a decimal", header: "Cache-Control: max-age=3600 | Age: 7200.0", after: 1, word: "HIT"},
		{says: "5.1: a parameter", header: "Cache-Control: max-age=3600 | Age: 7200;foo=bar", after: 1, word: "HIT"},
		{says: "5.1: an overflow", header: "Cache-Control: max-age=3600 | Age: 99999999999999", after: 1, word: "EXPIRED"},
		{says: "4.2.3: the time since Date is an age", header: "Cache-Control: max-age=100 | Date: {-90}", after: 20, word: "EXPIRED"},
		{says: "4.2.3: Age and Date: the larger one", header: "Cache-Control: max-age=100 | Date: {-10} | Age: 95", after: 6, word: "EXPIRED"},
		{says: "4.2.3: a Date of the future", header: "Cache-Control: max-age=100 | Date: {+900}", after: 99, word: "HIT"},
		{says: "4.2.3: an invalid Date", header: "Cache-Control: max-age=100 | Date: x", after: 50, word: "HIT"},
	}))
	e.tell("/age", []story{
		{"5.1: the sent Age is the sum of that of the origin and the time here", []step{
			{header: "Cache-Control: max-age=100 | Age: 30"}, {after: 5, word: "HIT", has: "Age: 35"},
		}},
		{"4.2.3: the sent Age starts at the time since Date", []step{
			{header: "Cache-Control: max-age=100 | Date: {-20}"}, {after: 5, word: "HIT", has: "Age: 25"},
		}},
		{"5.1: a response that is not from here has no Age of ours", []step{{header: "Cache-Control: max-age=100", word: "MISS", has: "Age: -"}}},
		{"RFC 9110 6.6.1: Date is added where the origin sends none", []step{{header: "Cache-Control: max-age=9 | Date: -", word: "MISS", has: "Date: {+0}"}, {word: "HIT", has: "Date: {+0}"}}},
	})
}

func TestDirectivesOfResponsesByRFC9111Section522(t *testing.T) {
	e := newCachingEdge(t, respecting)
	tag := ` | Etag: "a"`
	e.tell("/d", reuse([]reused{
		{says: "5.2.2.5: no-store", header: "Cache-Control: no-store", word: "MISS"},
		{says: "5.2.2.5: no-store beside max-age", header: "Cache-Control: max-age=3600, no-store", word: "MISS"},
		{says: "5.2.2.5: no-store in a line of its own, in capitals", header: "Cache-Control: max-age=3600 | Cache-Control: No-StoRe", word: "MISS"},
		{says: "5.2.2.5: no-store beside Expires", header: "Cache-Control: no-store | Expires: {+900}", word: "MISS"},
		{says: "5.2.2.7: private", header: "Cache-Control: private, max-age=3600", word: "MISS"},
		{says: "5.2.2.7: private with a field that the response lacks", header: `Cache-Control: private="x-a", max-age=3600`, word: "HIT"},
		{says: "5.2.2.7: an invalid list counts as none", header: `Cache-Control: private="x-a`, word: "MISS"},
		{says: "5.2.2.4: no-cache without a validator", header: "Cache-Control: no-cache, max-age=3600", word: "MISS"},
		{says: "5.2.2.4: no-cache with one is validated", header: "Cache-Control: no-cache, max-age=3600" + tag, word: "EXPIRED"},
		{says: "5.2.2.4: in capitals", header: "Cache-Control: No-CachE, max-age=3600" + tag, word: "EXPIRED"},
		{says: "5.2.2.4: before its use Expires does not count", header: "Cache-Control: no-cache | Expires: {+900}" + tag, word: "EXPIRED"},
		{says: "5.4: Pragma of a response means nothing", header: "Pragma: no-cache | Cache-Control: max-age=3600", word: "HIT"},
		{says: "5.2.2.2: must-revalidate is fresh until then", header: "Cache-Control: must-revalidate, max-age=10", after: 9, word: "HIT"},
		{says: "5.2.2.2: must-revalidate alone is no lifetime", header: "Cache-Control: must-revalidate", word: "MISS"},
		{says: "5.2.2.3: must-understand and no-store of a status that is understood", header: "Cache-Control: no-store, must-understand, max-age=100", after: 1, word: "HIT"},
		{says: "5.2.2.9: public alone is no lifetime", header: "Cache-Control: public", word: "MISS"},
		{says: "4.1: Vary: *", header: "Cache-Control: max-age=100 | Vary: *", word: "MISS"},
		{says: "4.1: Vary: * beside a name", header: "Cache-Control: max-age=100 | Vary: Foo, *", word: "MISS"},
		{says: "4.1: Vary: * in another line", header: "Cache-Control: max-age=100 | Vary: Foo | Vary: *", word: "MISS"},
		{says: "4.1: a Vary that is no list of tokens", header: "Cache-Control: max-age=100 | Vary: a b", word: "MISS"},
		{says: "5.2.1: directives of requests are ignored: no-cache", header: "Cache-Control: max-age=100", second: "Cache-Control: no-cache", word: "HIT"},
		{says: "5.2.1: max-age=0", header: "Cache-Control: max-age=100", second: "Cache-Control: max-age=0", word: "HIT"},
		{says: "5.2.1: no-store of the second request", header: "Cache-Control: max-age=100", second: "Cache-Control: no-store", word: "HIT"},
		{says: "5.4: Pragma of a request", header: "Cache-Control: max-age=100", second: "Pragma: no-cache", word: "HIT"},
	}))
	e.tell("/s/d", append(reuse([]reused{
		{says: "5.2.2.3: must-understand and a status that is not", status: 299, header: "Cache-Control: must-understand, max-age=100", word: "MISS"},
	}), fields522...))
}

var fields522 = []story{
	{"5.2.2.4: a field that no-cache names is not reused", []step{
		{header: `Cache-Control: max-age=100, no-cache="x-a" | X-A: 1 | X-B: 1`, has: "X-A: 1"}, {word: "HIT", has: "X-A: - | X-B: 1"},
	}},
	{"5.2.2.7: a field that private names is not stored", []step{
		{header: `Cache-Control: max-age=100, private="x-a, x-b" | X-A: 1 | X-B: 1 | X-C: 1`, has: "X-A: 1"}, {word: "HIT", has: "X-A: - | X-B: - | X-C: 1"},
	}},
	{"5.2.2.2: must-revalidate is not served stale when the origin fails", []step{
		{header: "Cache-Control: max-age=1, must-revalidate, stale-if-error=900"}, {after: 5, status: 503, got: 503},
	}},
	{"5.2.2.8: proxy-revalidate neither", []step{
		{header: "Cache-Control: max-age=1, proxy-revalidate, stale-if-error=900"}, {after: 5, status: 503, got: 503},
	}},
	{"5.2.2.4: no-cache neither", []step{
		{header: `Cache-Control: no-cache, stale-if-error=900, max-age=900 | Etag: "a"`}, {after: 5, status: 503, got: 503},
	}},
	{"3.1: fields of one hop are not stored", []step{
		{header: "Cache-Control: max-age=100 | Connection: X-A | X-A: 1 | Keep-Alive: 1 | Proxy-Authenticate: Basic | X-B: 1", has: "X-A: - | Keep-Alive: - | Proxy-Authenticate: -"},
		{word: "HIT", has: "X-A: - | Keep-Alive: - | Proxy-Authenticate: - | X-B: 1"},
	}},
	{"3.1: other fields are, whatever they are", []step{
		{header: "Cache-Control: max-age=100 | Foo: a, b | Content-Language: de | Content-Security-Policy: x | Content-Location: /y"},
		{word: "HIT", has: "Foo: a, b | Content-Language: de | Content-Security-Policy: x | Content-Location: /y"},
	}},
	{"3.5: Authorization", []step{
		{header: "Cache-Control: public, max-age=100", request: "Authorization: Basic x", word: "BYPASS"},
		{header: "Cache-Control: public, max-age=100", word: "MISS"}, {request: "Authorization: Basic x", word: "BYPASS"},
	}},
}

func TestStatusesByRFC9111Section3(t *testing.T) {
	e := newCachingEdge(t, respecting)
	var fresh, stale []reused
	for _, status := range []int{200, 202, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 404, 405, 410, 414, 418, 451, 499, 500, 501, 502, 503, 504, 599} {
		fresh = append(fresh, reused{says: "a rule that lists the status stores it", status: status, header: "Cache-Control: max-age=100", word: "HIT"})
		stale = append(stale, reused{says: "but serves it not beyond its lifetime", status: status, header: "Cache-Control: max-age=1", after: 9, word: "EXPIRED"})
	}
	e.tell("/s/fresh", reuse(fresh))
	e.tell("/s/stale", reuse(stale))
	e.tell("/status", reuse([]reused{
		{says: "without a list 206 is not stored: it is a part", status: 206, header: "Cache-Control: max-age=100 | Content-Range: bytes 0-0/9", word: "MISS"},
		{says: "nor 404", status: 404, header: "Cache-Control: max-age=100", word: "MISS"},
		{says: "nor 302", status: 302, header: "Cache-Control: max-age=100 | Location: /", word: "MISS"},
		{says: "301", status: 301, header: "Cache-Control: max-age=100 | Location: /", word: "HIT"},
	}))
}

func TestTargetedFieldsByRFC9213(t *testing.T) {
	e := newCachingEdge(t, respecting)
	tag := ` | Etag: "a"`
	e.tell("/t", append(reuse([]reused{
		{says: "2.2: max-age counts alone", header: "CDN-Cache-Control: max-age=100 | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.2: also if it is shorter", header: "CDN-Cache-Control: max-age=1 | Cache-Control: max-age=100", after: 50, word: "EXPIRED"},
		{says: "2.2: no-store of Cache-Control does not count", header: "CDN-Cache-Control: max-age=100 | Cache-Control: no-store", after: 50, word: "HIT"},
		{says: "2.2: private of Cache-Control does not count", header: "CDN-Cache-Control: max-age=100 | Cache-Control: private", after: 50, word: "HIT"},
		{says: "2.2: Expires does not count", header: "CDN-Cache-Control: max-age=100 | Expires: {-9}", after: 50, word: "HIT"},
		{says: "2.1: no-store beside a fresh Cache-Control", header: "CDN-Cache-Control: no-store | Cache-Control: max-age=100", word: "MISS"},
		{says: "2.1: private beside a fresh Cache-Control", header: "CDN-Cache-Control: private | Cache-Control: max-age=100", word: "MISS"},
		{says: "2.1: no-cache beside a fresh Cache-Control", header: "CDN-Cache-Control: no-cache | Cache-Control: max-age=100", word: "MISS"},
		{says: "2.1: no-cache with a validator is validated", header: "CDN-Cache-Control: no-cache | Cache-Control: max-age=100" + tag, word: "EXPIRED"},
		{says: "2.1: max-age=0 beside a fresh Cache-Control", header: "CDN-Cache-Control: max-age=0 | Cache-Control: max-age=100", word: "MISS"},
		{says: "2.1: s-maxage", header: "CDN-Cache-Control: s-maxage=100, max-age=1 | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.1: unknown directives", header: `CDN-Cache-Control: foo, max-age=100, bar=b, x="y" | Cache-Control: max-age=1`, after: 50, word: "HIT"},
		{says: "2.1: parameters are ignored", header: "CDN-Cache-Control: max-age=100;foo=bar | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.1: several lines", header: "CDN-Cache-Control: public | CDN-Cache-Control: max-age=100 | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.1: of two the last counts", header: "CDN-Cache-Control: max-age=1, max-age=100 | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.1: a field that is not valid is ignored: a string without an end", header: `CDN-Cache-Control: a="b | Cache-Control: max-age=100`, after: 50, word: "HIT"},
		{says: "2.1: a comma at the end", header: "CDN-Cache-Control: max-age=100, | Cache-Control: max-age=1", after: 50, word: "EXPIRED"},
		{says: "2.1: letters after a number", header: "CDN-Cache-Control: max-age=100a | Cache-Control: max-age=1", after: 50, word: "EXPIRED"},
		{says: "2.1: capitals", header: "CDN-Cache-Control: Max-Age=100 | Cache-Control: max-age=1", after: 50, word: "EXPIRED"},
		{says: "2.1: a space before the equals sign", header: "CDN-Cache-Control: max-age =100 | Cache-Control: max-age=1", after: 50, word: "EXPIRED"},
		{says: "2.1: an empty field", header: "CDN-Cache-Control:  | Cache-Control: max-age=100", after: 50, word: "HIT"},
		{says: "2.1: the largest integer", header: "CDN-Cache-Control: max-age=999999999999999 | Cache-Control: max-age=1", after: 50, word: "HIT"},
		{says: "2.1: a time that is a string forbids", header: `CDN-Cache-Control: max-age="100" | Cache-Control: max-age=100`, word: "MISS"},
		{says: "RFC 9111 5.2.3: another target's field", header: "Other-Cache-Control: no-store | Cache-Control: max-age=100", word: "HIT"},
	}), story{"clients get Cache-Control as the origin sent it", []step{
		{header: "CDN-Cache-Control: max-age=100 | Cache-Control: max-age=7"}, {after: 50, word: "HIT", has: "Cache-Control: max-age=7"},
	}}, story{"RFC 9111 3.2: a validation replaces it", []step{
		{header: "CDN-Cache-Control: max-age=10 | Cache-Control: no-store" + tag},
		{after: 11, status: 304, header: "CDN-Cache-Control: max-age=100" + tag, word: "REVALIDATED"}, {after: 50, word: "HIT"},
	}}))
}

func TestVaryByRFC9111Section41(t *testing.T) {
	e := newCachingEdge(t, respecting)
	vary := "Cache-Control: max-age=900 | Vary: Foo"
	e.tell("/v", append(reuse([]reused{
		{says: "4.1: the same value", header: vary, first: "Foo: 1", second: "Foo: 1", word: "HIT"},
		{says: "4.1: another value", header: vary, first: "Foo: 1", second: "Foo: 2", word: "MISS"},
		{says: "4.1: missing in the second request", header: vary, first: "Foo: 1", word: "MISS"},
		{says: "4.1: missing in the first request", header: vary, second: "Foo: 1", word: "MISS"},
		{says: "4.1: missing is not empty", header: vary, second: "Foo: ", word: "MISS"},
		{says: "4.1: missing in both", header: vary, word: "HIT"},
		{says: "4.1: fields that it does not name", header: vary, first: "Foo: 1", second: "Foo: 1 | Bar: 1", word: "HIT"},
		{says: "4.1: white space around members", header: vary, first: "Foo: 1,2", second: "Foo: 1 ,  2", word: "HIT"},
		{says: "4.1: several lines", header: vary, first: "Foo: 1, 2", second: "Foo: 1 | Foo: 2", word: "HIT"},
		{says: "4.1: the order of members matters", header: vary, first: "Foo: 1, 2", second: "Foo: 2, 1", word: "MISS"},
		{says: "4.1: the case of values matters", header: vary, first: "Foo: a", second: "Foo: A", word: "MISS"},
		{says: "4.1: two names", header: "Cache-Control: max-age=900 | Vary: Foo, Bar", first: "Foo: 1 | Bar: 1", second: "Foo: 1 | Bar: 2", word: "MISS"},
		{says: "4.1: two lines of names", header: "Cache-Control: max-age=900 | Vary: Foo | Vary: Bar", first: "Foo: 1 | Bar: 1", second: "Foo: 1 | Bar: 2", word: "MISS"},
		{says: "4.1: names have no case", header: "Cache-Control: max-age=900 | Vary: fOO", first: "Foo: 1", second: "Foo: 2", word: "MISS"},
		{says: "4.1: empty members", header: "Cache-Control: max-age=900 | Vary: , Foo,,", first: "Foo: 1", second: "Foo: 1", word: "HIT"},
		{says: "4.1: no name", header: "Cache-Control: max-age=900 | Vary: ", first: "Foo: 1", second: "Foo: 2", word: "HIT"},
		{says: "4.1: a cookie is no list", header: "Cache-Control: max-age=900 | Vary: Cookie", first: "Cookie: a=b,c", second: "Cookie: a=b, c", word: "MISS"},
		{says: "4.1: what the origin is told of a client: its address", header: "Cache-Control: max-age=900 | Vary: X-Real-IP", first: "X-Real-Ip: 1.1.1.1", second: "X-Real-Ip: 2.2.2.2", word: "HIT"},
		{says: "4.1: a field of the connection does not reach the origin", header: vary, first: "Foo: 1", second: "Foo: 1 | Connection: Foo", word: "BYPASS"},
		{says: "4.1: X-Forwarded-For is the chain that the origin is told", header: "Cache-Control: max-age=900 | Vary: X-Forwarded-For", first: "X-Forwarded-For: 1.1.1.1", second: "X-Forwarded-For: 2.2.2.2", word: "MISS"},
	}), story{"4.1: variants stay beside each other", []step{
		{header: vary, request: "Foo: 1", body: "one"}, {header: vary, request: "Foo: 2", body: "two"},
		{header: vary, request: "Foo: 1", word: "HIT", gotBody: "one"}, {header: vary, request: "Foo: 2", word: "HIT", gotBody: "two"},
	}}, story{"4.1: a response without Vary beside one with it", []step{
		{header: vary, request: "Foo: 1", body: "one"}, {header: "Cache-Control: max-age=900", request: "Foo: 2", body: "two"},
		{request: "Foo: 3", word: "HIT", gotBody: "two"},
	}}, story{"4.3.4: a validation that changes Vary", []step{
		{header: `Cache-Control: max-age=1 | Etag: "a"`, request: "Foo: 1", body: "one"},
		{after: 5, status: 304, header: `Cache-Control: max-age=900 | Etag: "a" | Vary: Foo`, request: "Foo: 1", word: "REVALIDATED", gotBody: "one"},
		{header: vary, request: "Foo: 2", word: "MISS"},
	}}))
}
