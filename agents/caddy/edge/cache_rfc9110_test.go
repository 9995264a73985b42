package edge

import "testing"

func TestValidationByRFC9111Section43(t *testing.T) {
	e := newCachingEdge(t, respecting)
	short := `Cache-Control: max-age=10 | Etag: "a" | Last-Modified: {-900}`
	e.tell("/v", []story{
		{"4.3.1: a validation has the tag and the date of what is stored, not those of the client", []step{
			{header: `Cache-Control: max-age=10 | Etag: "a" | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT`},
			{after: 11, request: `If-None-Match: "b"`, status: 304, header: `Etag: "a"`, asks: `If-None-Match: "a" | If-Modified-Since: Thu, 18 Aug 2022 02:01:18 GMT`, word: "REVALIDATED", got: 200, gotBody: "0"},
		}},
		{"4.3.1: a weak tag", []step{
			{header: `Cache-Control: max-age=10 | Etag: W/"a"`}, {after: 11, status: 304, header: `Etag: W/"a"`, asks: `If-None-Match: W/"a"`, word: "REVALIDATED"},
		}},
		{"4.3.1: Last-Modified alone", []step{
			{header: "Cache-Control: max-age=10 | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT"},
			{after: 11, status: 304, asks: "If-None-Match: - | If-Modified-Since: Thu, 18 Aug 2022 02:01:18 GMT", word: "REVALIDATED", gotBody: "0"},
		}},
		{"4.3.1: without a validator nothing is asked", []step{
			{header: "Cache-Control: max-age=10"}, {after: 11, request: `If-None-Match: "b"`, asks: "If-None-Match: -", word: "EXPIRED", header: `Etag: "c"`},
		}},
		{"4.3.1: a tag without quotes is none", []step{{header: "Cache-Control: max-age=10 | Etag: a"}, {after: 11, asks: "If-None-Match: -", word: "EXPIRED"}}},
		{"4.3.3: a full response takes the place of what is stored", []step{
			{header: short}, {after: 11, header: `Cache-Control: max-age=900 | Etag: "b"`, word: "EXPIRED", gotBody: "1"}, {word: "HIT", gotBody: "1", has: `Etag: "b"`},
		}},
		{"4.3.3: an error goes to the client, and what is stored stays", []step{
			{header: short}, {after: 11, status: 500, got: 500}, {status: 304, header: `Etag: "a"`, word: "REVALIDATED", gotBody: "0"},
		}},
		{"4.3.4: a response 304 makes the stored one fresh", []step{
			{header: short}, {after: 11, status: 304, header: `Cache-Control: max-age=900 | Etag: "a"`, word: "REVALIDATED"}, {after: 50, word: "HIT", has: "Cache-Control: max-age=900 | Age: 50"},
		}},
		{"4.3.4: for the stored lifetime where it names none", []step{
			{header: short}, {after: 11, status: 304, header: `Etag: "a"`, word: "REVALIDATED"}, {after: 9, word: "HIT"}, {after: 2, status: 304, word: "REVALIDATED"},
		}},
		{"3.2: its fields take the place of stored ones", []step{
			{header: short + " | X-A: 1 | X-B: 1 | X-C: 1 | X-C: 2"}, {after: 11, status: 304, header: `Cache-Control: max-age=900 | Etag: "a" | X-A: 2 | X-C: 3`, word: "REVALIDATED", has: "X-A: 2 | X-B: 1 | X-C: 3"},
			{word: "HIT", has: "X-A: 2 | X-B: 1 | X-C: 3"},
		}},
		{"3.2: fields about the body stay", []step{
			{header: short + " | Content-Type: text/plain | Content-Encoding: gzip", body: "hello"},
			{after: 11, status: 304, header: `Cache-Control: max-age=900 | Etag: "a" | Content-Type: text/html | Content-Encoding: br | Content-Range: bytes 0-0/1 | Content-Length: 99`, word: "REVALIDATED"},
			{word: "HIT", request: "Accept-Encoding: gzip", gotBody: "hello", has: "Content-Type: text/plain | Content-Encoding: gzip | Content-Range: - | Content-Length: 5"},
		}},
		{"3.1: fields of the connection of a response 304 are not stored", []step{
			{header: short + " | X-A: 1"}, {after: 11, status: 304, header: `Cache-Control: max-age=900 | Etag: "a" | Connection: X-A | X-A: 2`, word: "REVALIDATED", has: "X-A: 1"}, {word: "HIT", has: "X-A: 1"},
		}},
		{"4.3.4: a response 304 about another version is none about this one", []step{
			{header: short}, {after: 11, status: 304, header: `Etag: "b"`},
			{header: `Cache-Control: max-age=900 | Etag: "b"`, body: "new", gotBody: "new", word: "MISS"},
		}},
		{"4.3.4: one with private ends what is stored", []step{
			{header: short}, {after: 11, status: 304, header: `Cache-Control: private | Etag: "a"`, word: "REVALIDATED", gotBody: "0"}, {header: "Cache-Control: private", word: "MISS"},
		}},
		{"4.3.4: Set-Cookie of a response 304 goes to nobody", []step{
			{header: short}, {after: 11, status: 304, header: `Cache-Control: max-age=900 | Etag: "a" | Set-Cookie: a=b`, word: "REVALIDATED", has: "Set-Cookie: -"}, {word: "HIT", has: "Set-Cookie: -"},
		}},
	})
}

func TestConditionsOfClientsByRFC9110Section13(t *testing.T) {
	e := newCachingEdge(t, respecting)
	at := `Cache-Control: max-age=900 | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT | Etag: `
	var stories []story
	for _, c := range []struct {
		says, tag, condition string
		got                  int
	}{
		{"13.1.2: a strong tag", `"a"`, `If-None-Match: "a"`, 304},
		{"13.1.2: tags are compared weakly", `"a"`, `If-None-Match: W/"a"`, 304},
		{"13.1.2: a weak tag", `W/"a"`, `If-None-Match: "a"`, 304},
		{"13.1.2: a list", `"a"`, `If-None-Match: "x" , "a"`, 304},
		{"13.1.2: a list without spaces", `"a"`, `If-None-Match: "x","a","y"`, 304},
		{"13.1.2: a comma in a tag", `"a,b"`, `If-None-Match: "x", "a,b"`, 304},
		{"13.1.2: two lines", `"a"`, `If-None-Match: "x" | If-None-Match: "a"`, 304},
		{"13.1.2: any", `"a"`, `If-None-Match: *`, 304},
		{"13.1.2: another tag", `"a"`, `If-None-Match: "b"`, 200},
		{"13.1.2: a tag in quotes is none without", `"a"`, `If-None-Match: a`, 200},
		{"8.8.3: a backslash escapes nothing", `"a\"`, `If-None-Match: "a\"`, 304},
		{"13.1.3: the date", `"a"`, "If-Modified-Since: Thu, 18 Aug 2022 02:01:18 GMT", 304},
		{"13.1.3: a later date", `"a"`, "If-Modified-Since: Thu, 18 Aug 2022 02:01:19 GMT", 304},
		{"13.1.3: an earlier date", `"a"`, "If-Modified-Since: Thu, 18 Aug 2022 02:01:17 GMT", 200},
		{"13.1.3: no date", `"a"`, "If-Modified-Since: 1", 200},
		{"13.2.2: If-None-Match counts before the date", `"a"`, `If-None-Match: "b" | If-Modified-Since: Thu, 18 Aug 2022 02:01:18 GMT`, 200},
		{"13.1.1: a condition that a cache does not evaluate goes to the origin", `"a"`, `If-Match: "b"`, 200},
	} {
		word := "HIT"
		if c.got == 200 && c.condition == `If-Match: "b"` {
			word = "BYPASS"
		}
		stories = append(stories, story{c.says, []step{
			{header: at + c.tag}, {request: c.condition, header: at + c.tag, word: word, got: c.got, has: "Cache-Control: max-age=900"},
		}}, story{c.says + ", while it comes", []step{{header: at + c.tag, request: c.condition, got: c.got}}})
	}
	e.tell("/c", append(stories, story{"15.4.5: a response 304 has the fields that a response 200 has", []step{
		{header: at + `"a" | Vary: Foo | Expires: {+900} | Content-Location: /y | Content-Type: image/png`},
		{request: `If-None-Match: "a"`, word: "HIT", got: 304, gotBody: "-", has: `Vary: Foo, Accept-Encoding | Content-Location: /y | Content-Type: - | Content-Length: - | Age: 0`},
	}}, story{"RFC 9111 4.3.2: conditions are evaluated on a response that was just validated", []step{
		{header: `Cache-Control: max-age=10 | Etag: "a"`}, {after: 11, request: `If-None-Match: "a"`, status: 304, header: `Etag: "a"`, word: "REVALIDATED", got: 304},
	}}, story{"13.2.1: and on one that is not stored", []step{
		{header: `Cache-Control: no-store | Etag: "a"`, request: `If-None-Match: "a"`, word: "MISS", got: 304, gotBody: "-"},
		{status: 304, header: `Cache-Control: no-store | Etag: "a"`, request: `If-None-Match: "a"`, asks: `If-None-Match: "a"`, got: 304, gotBody: "-"},
	}}))
}

func TestRangesByRFC9110Section14(t *testing.T) {
	e := newCachingEdge(t, respecting)
	at := `Cache-Control: max-age=900 | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT | Etag: `
	var stories []story
	for _, c := range []struct {
		says, tag, request string
		got                int
		body, contentRange string
	}{
		{"14.1.2: first to last", `"a"`, "Range: bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"14.1.2: to the end", `"a"`, "Range: bytes=7-", 206, "789", "bytes 7-9/10"},
		{"14.1.2: the last ones", `"a"`, "Range: bytes=-2", 206, "89", "bytes 8-9/10"},
		{"14.1.2: more than there are", `"a"`, "Range: bytes=5-99", 206, "56789", "bytes 5-9/10"},
		{"14.2: a range that cannot be satisfied", `"a"`, "Range: bytes=10-", 416, "-", "bytes */10"},
		{"14.2: an invalid range is ignored", `"a"`, "Range: bytes=4-2", 200, "0123456789", "-"},
		{"14.2: another unit is ignored", `"a"`, "Range: rows=1-2", 200, "0123456789", "-"},
		{"14.2: several ranges get the whole", `"a"`, "Range: bytes=0-1,3-4", 200, "0123456789", "-"},
		{"13.1.5: If-Range with the strong tag", `"a"`, `Range: bytes=2-4 | If-Range: "a"`, 206, "234", "bytes 2-4/10"},
		{"13.1.5: with another one", `"a"`, `Range: bytes=2-4 | If-Range: "b"`, 200, "0123456789", "-"},
		{"13.1.5: with a weak one", `W/"a"`, `Range: bytes=2-4 | If-Range: W/"a"`, 200, "0123456789", "-"},
		{"13.1.5: with the date", `"a"`, "Range: bytes=2-4 | If-Range: Thu, 18 Aug 2022 02:01:18 GMT", 206, "234", "bytes 2-4/10"},
		{"13.1.5: with a later one", `"a"`, "Range: bytes=2-4 | If-Range: Thu, 18 Aug 2022 02:01:19 GMT", 200, "0123456789", "-"},
		{"13.2.2: a condition counts before the range", `"a"`, `Range: bytes=2-4 | If-None-Match: "a"`, 304, "-", "-"},
	} {
		has := "Etag: " + c.tag + " | Content-Range: " + c.contentRange
		stories = append(stories,
			story{c.says, []step{{header: at + c.tag, body: "0123456789"}, {request: c.request, word: "HIT", got: c.got, gotBody: c.body, has: has}}},
			story{c.says + ", while it comes", []step{{header: at + c.tag, body: "0123456789", request: c.request, asks: "Range: -", got: c.got, gotBody: c.body, has: has}, {word: "HIT", got: 200, gotBody: "0123456789"}}},
			story{c.says + ", after a validation", []step{
				{header: "Cache-Control: max-age=5 | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT | Etag: " + c.tag, body: "0123456789"},
				{after: 6, request: c.request, status: 304, header: "Etag: " + c.tag, word: "REVALIDATED", got: c.got, gotBody: c.body, has: has},
			}})
	}
	e.tell("/r", append(stories,
		story{"RFC 9111 3.3: a part is never stored as the whole", []step{
			{status: 206, header: `Cache-Control: max-age=900 | Etag: "a" | Content-Range: bytes 0-2/10`, body: "012"}, {header: at + `"a"`, body: "0123456789", word: "MISS", got: 200, gotBody: "0123456789"},
		}},
		story{"14.2: a range of a response that is not stored", []step{
			{header: "Cache-Control: no-store", body: "0123456789", request: "Range: bytes=2-4", word: "MISS", got: 206, gotBody: "234", has: "Content-Range: bytes 2-4/10 | Content-Length: 3"},
			{header: "Cache-Control: no-store | Content-Range: bytes 2-4/10", status: 206, body: "234", request: "Range: bytes=2-4", asks: "Range: bytes=2-4", got: 206, gotBody: "234"},
		}},
		story{"14.2: a range concerns a GET alone", []step{
			{header: at + `"a"`, body: "0123456789"}, {method: "HEAD", request: "Range: bytes=2-4", word: "HIT", got: 200, has: "Content-Length: 10 | Content-Range: -"},
		}},
	))
}

func TestInvalidationByRFC9111Section44(t *testing.T) {
	e := newCachingEdge(t, respecting)
	long := "Cache-Control: max-age=900"
	var stories []story
	for _, c := range []struct {
		says, method string
		status       int
		word         string
	}{
		{"POST", "POST", 200, "MISS"}, {"PUT", "PUT", 204, "MISS"}, {"DELETE", "DELETE", 200, "MISS"}, {"PATCH", "PATCH", 200, "MISS"},
		{"a method that is not known", "M-SEARCH", 200, "MISS"}, {"a redirect", "POST", 303, "MISS"},
		{"an error of the client", "POST", 404, "HIT"}, {"an error of the origin", "PUT", 500, "HIT"}, {"a safe method", "OPTIONS", 200, "HIT"},
	} {
		stories = append(stories, story{"4.4: " + c.says, []step{{header: long}, {method: c.method, status: c.status}, {header: long, word: c.word}}})
	}
	e.tell("/i", stories)
	for _, c := range []struct{ says, header, word string }{
		{"4.4: Location", "Location: /other", "MISS"},
		{"4.4: Content-Location", "Content-Location: /other", "MISS"},
		{"4.4: an absolute one", "Location: http://a.com/other", "MISS"},
		{"4.4: one relative to the path", "Location: other", "MISS"},
		{"4.4: of another host", "Location: http://b.com/other", "HIT"},
		{"4.4: of another scheme", "Location: https://a.com/other", "HIT"},
		{"4.4: of another port", "Location: http://a.com:8080/other", "HIT"},
		{"4.4: one that is no URL", "Location: http://a.com:x/other", "HIT"},
	} {
		e.tell("/x", []story{{c.says, []step{
			{target: "/other", header: long}, {target: "/other", header: long, word: "HIT"}, {method: "POST", status: 201, header: c.header}, {target: "/other", header: long, word: c.word},
		}}})
	}
	e.tell("/q", []story{
		{"4.4: another query is another resource", []step{
			{target: "/q?a=1", header: long}, {target: "/q?a=2", header: long}, {target: "/q?a=1", method: "POST"}, {target: "/q?a=2", header: long, word: "HIT"}, {target: "/q?a=1", header: long, word: "MISS"},
		}},
		{"4.4: all variants", []step{
			{header: long + " | Vary: Foo", request: "Foo: 1"}, {header: long + " | Vary: Foo", request: "Foo: 2"}, {method: "POST"},
			{header: long + " | Vary: Foo", request: "Foo: 1", word: "MISS"}, {header: long + " | Vary: Foo", request: "Foo: 2", word: "MISS"},
		}},
		{"4.4: another spelling of the path", []step{{target: "/q/z", header: long}, {target: "/q/a/../z", method: "POST"}, {target: "/q/z", header: long, word: "MISS"}}},
	})
}

func TestHEADByRFC9111Section435(t *testing.T) {
	e := newCachingEdge(t, respecting)
	short := `Cache-Control: max-age=10 | Etag: "a" | X-A: 1`
	e.tell("/h", []story{
		{"a HEAD is responded to from a stored GET", []step{{header: short}, {method: "HEAD", word: "HIT", got: 200, gotBody: "-", has: `Etag: "a" | Content-Length: 1`}}},
		{"a HEAD is not stored", []step{{method: "HEAD", header: short}, {header: short, word: "MISS"}}},
		{"4.3.5: it goes to the origin where what is stored is stale, and freshens it", []step{
			{header: short}, {after: 11, method: "HEAD", header: `Cache-Control: max-age=900 | Etag: "a" | X-A: 2`, body: "x", asks: "If-None-Match: -"},
			{word: "HIT", gotBody: "0", has: "X-A: 2 | Cache-Control: max-age=900"},
		}},
		{"4.3.5: another tag makes what is stored stale", []step{
			{header: short}, {after: 11, method: "HEAD", header: `Cache-Control: max-age=900 | Etag: "b"`, body: "x"}, {header: short, word: "MISS", gotBody: "2"},
		}},
		{"4.3.5: so does another length", []step{
			{header: short}, {after: 11, method: "HEAD", header: `Cache-Control: max-age=900 | Etag: "a"`, body: "longer"}, {header: short, word: "MISS"},
		}},
		{"4.3.5: so does another date", []step{
			{header: "Cache-Control: max-age=10 | Last-Modified: Thu, 18 Aug 2022 02:01:18 GMT"},
			{after: 11, method: "HEAD", header: "Cache-Control: max-age=900 | Last-Modified: Thu, 18 Aug 2022 02:01:19 GMT", body: "x"}, {header: short, word: "MISS"},
		}},
		{"4.3.5: an error changes nothing", []step{
			{header: short}, {after: 11, method: "HEAD", status: 404, header: `Etag: "b"`}, {status: 304, header: `Etag: "a"`, word: "REVALIDATED"},
		}},
		{"4.3.5: one without a validator does not freshen", []step{
			{header: "Cache-Control: max-age=10 | X-A: 1"}, {after: 11, method: "HEAD", header: "Cache-Control: max-age=900 | X-A: 2", body: "x"}, {header: short, word: "EXPIRED"},
		}},
	})
}

func TestStaleResponsesByRFC5861(t *testing.T) {
	e := newCachingEdge(t, respecting)
	tag := ` | Etag: "a"`
	e.tell("/s", []story{
		{"3: stale-while-revalidate", []step{
			{header: "Cache-Control: max-age=10, stale-while-revalidate=60"}, {after: 30, header: "Cache-Control: max-age=900", word: "UPDATING", gotBody: "0"}, {word: "HIT", gotBody: "1"},
		}},
		{"3: its time is over", []step{{header: "Cache-Control: max-age=10, stale-while-revalidate=60"}, {after: 71, header: "Cache-Control: max-age=900", word: "EXPIRED", gotBody: "1"}}},
		{"3: a validation behind the client", []step{
			{header: "Cache-Control: max-age=10, stale-while-revalidate=60" + tag}, {after: 30, status: 304, header: "Cache-Control: max-age=900" + tag, word: "UPDATING", asks: `If-None-Match: "a"`}, {after: 99, word: "HIT", gotBody: "0"},
		}},
		{"4: stale-if-error", []step{{header: "Cache-Control: max-age=10, stale-if-error=60"}, {after: 30, status: 503, word: "STALE", got: 200, gotBody: "0"}, {status: 500, word: "STALE"}}},
		{"4: its time is over", []step{{header: "Cache-Control: max-age=10, stale-if-error=60"}, {after: 71, status: 503, got: 503}}},
		{"4: other statuses are no errors", []step{{header: "Cache-Control: max-age=10, stale-if-error=60"}, {after: 30, status: 404, got: 404}}},
		{"4: a response without the directive", []step{{header: "Cache-Control: max-age=10"}, {after: 30, status: 503, got: 503}}},
		{"4: the directive of a targeted field", []step{{header: "CDN-Cache-Control: max-age=10, stale-if-error=60"}, {after: 30, status: 502, word: "STALE", got: 200}}},
	})
}

func TestCacheStatusByRFC9211(t *testing.T) {
	e := newCachingEdge(t, respecting)
	e.tell("/s", []story{
		{"2.1: hit and fwd are never together", []step{
			{header: `Cache-Control: max-age=10, stale-if-error=60 | Etag: "a"`, has: "Cache-Status: edge; fwd=miss; stored"},
			{word: "HIT", has: "Cache-Status: edge; hit; ttl=10"},
			{after: 11, status: 304, header: `Etag: "a"`, has: "Cache-Status: edge; fwd=stale; fwd-status=304; stored"},
			{after: 11, status: 503, word: "STALE", has: "Cache-Status: edge; fwd=stale; fwd-status=503; detail=stale-if-error"},
			{header: "Cache-Control: max-age=1", has: "Cache-Status: edge; fwd=stale; stored"},
		}},
		{"2.2: the reason of a request that goes past", []step{
			{method: "POST", has: "Cache-Status: edge; fwd=method"}, {request: "Authorization: Basic x", has: "Cache-Status: edge; fwd=bypass"},
		}},
		{"2.8: why a response is not stored", []step{
			{header: "Cache-Control: no-store", has: "Cache-Status: edge; fwd=miss; detail=no-store"}, {header: "Set-Cookie: a=b", has: "Cache-Status: edge; fwd=miss; detail=set-cookie"},
		}},
		{"2.4: ttl of what is stale is below 0", []step{
			{header: "Cache-Control: max-age=10, stale-while-revalidate=60"}, {after: 13, header: "Cache-Control: max-age=10", word: "UPDATING", has: "Cache-Status: edge; hit; ttl=-3"},
		}},
		{"3: a member follows those of the caches before", []step{{header: "Cache-Control: max-age=10 | Cache-Status: origin; hit", has: "Cache-Status: origin; hit"}}},
	})
}
