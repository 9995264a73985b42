package svcorigin

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// fields returns the header lines of a raw request, sorted, without the request line.
func fields(head string) []string {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")[1:]
	slices.Sort(lines)
	return lines
}

func TestRequestHeaders(t *testing.T) {
	o, seen := answering(t, okAnswer)
	own := []string{"X-Forwarded-Proto: https", "X-Real-IP: 192.0.2.77", "X-Request-Id: req-00000001"}
	loop := "CDN-Loop: svc-0123456789abcdef"
	xff := "X-Forwarded-For: 127.0.0.1"
	for name, c := range map[string]struct {
		sent string
		want []string
		in   func(*Request)
		host string
	}{
		"nothing of the client's": {"", []string{"Host: site.test", loop, xff}, nil, ""},
		"ordinary fields pass": {"Accept: a\r\nAccept: b\r\nCookie: x=y\r\nUser-Agent: ü\r\nAuthorization: Basic x\r\nVia: 1.1 a\r\n",
			[]string{"Host: site.test", "Accept: a", "Accept: b", "Cookie: x=y", "User-Agent: ü", "Authorization: Basic x", "Via: 1.1 a", loop, xff}, nil, ""},
		"what the edge says cannot be forged": {"X-Real-IP: 1.1.1.1\r\nX-Forwarded-Proto: gopher\r\nX-Request-Id: evil-id-1\r\nX-Svc-Site: s\r\nx-svc-anything: s\r\nForwarded: for=1.1.1.1\r\n",
			[]string{"Host: site.test", "Forwarded: for=1.1.1.1", loop, xff}, nil, ""},
		"fields of one hop end here": {"Keep-Alive: 1\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nTE: gzip\r\nHTTP2-Settings: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings, X-Mine\r\nX-Mine: 1\r\n",
			[]string{"Host: site.test", loop, xff}, nil, ""},
		"Connection cannot remove the edge's fields": {"CDN-Loop: other; a=b\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: CDN-Loop, X-Real-IP, X-Forwarded-For, Host, X-Request-Id\r\n",
			[]string{"Host: site.test", "CDN-Loop: other; a=b, svc-0123456789abcdef", "X-Forwarded-For: 9.9.9.9, 127.0.0.1"}, nil, ""},
		"loops of several lines are kept": {"CDN-Loop: a\r\nCDN-Loop: b\r\n", []string{"Host: site.test", "CDN-Loop: a, b, svc-0123456789abcdef", xff}, nil, ""},
		"trailers are welcome":            {"TE: gzip;q=0.5, trailers\r\nConnection: TE\r\n", []string{"Host: site.test", "Te: trailers", loop, xff}, nil, ""},
		"an expectation is met here":      {"Expect: 100-continue\r\n", []string{"Host: site.test", loop, xff}, nil, ""},
		"chain of several proxies":        {"X-Forwarded-For: 9.9.9.9, 8.8.8.8\r\nX-Forwarded-For: 7.7.7.7\r\n", []string{"Host: site.test", loop, "X-Forwarded-For: 9.9.9.9, 8.8.8.8, 7.7.7.7, 127.0.0.1"}, nil, ""},
		"dropped chain in direct mode": {"X-Forwarded-For: 9.9.9.9\r\n", []string{"Host: site.test", loop, xff},
			func(in *Request) { in.DropForwardedFor = true }, ""},
		"the chain is not dropped in other modes": {"X-Forwarded-For: 9.9.9.9\r\n", []string{"Host: site.test", loop, "X-Forwarded-For: 9.9.9.9, 198.51.100.1"},
			func(in *Request) {
				in.DropForwardedFor, in.Mode, in.PeerAddr = true, "header", netip.MustParseAddr("198.51.100.1")
			}, ""},
		"host of the origin": {"", []string{"Host: Other.test:8080", loop, xff}, nil, "Other.test:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			origin := originAt("a", o.Addr().String())
			origin.HostHeader = c.host
			e := newEdge(t, settings(), origin)
			e.request = c.in
			answer := e.raw("GET / HTTP/1.1\r\nHost: Site.TEST:8080\r\n" + c.sent + "Connection: close\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
				t.Fatalf("got %q", answer)
			}
			want := append(slices.Clone(own), c.want...)
			slices.Sort(want)
			if got := fields(<-seen); !slices.Equal(got, want) {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestRequestTargetIsPassedAsItCame(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	for sent, want := range map[string]string{
		"/a?b=1;c=2&d":            "/a?b=1;c=2&d",
		"/%7Ea//b/../c/./%2F?%zz": "/%7Ea//b/../c/./%2F?%zz",
		"//evil.test/x":           "//evil.test/x",
		"/?":                      "/?",
		"/a+b%20c?x=a+b%20c?d":    "/a+b%20c?x=a+b%20c?d",
		"/ümlaut?ü":               "/ümlaut?ü",
		"/a#b":                    "/a%23b",
		"http://other.test/p?q;":  "/p?q;",
		"http://other.test?q":     "/?q",
		"http://other.test":       "/",
		"/%00%0d%0aX:%20y":        "/%00%0d%0aX:%20y",
	} {
		answer := e.raw("GET " + sent + " HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("%s: got %q", sent, answer)
			continue
		}
		line, _, _ := strings.Cut(<-seen, "\r\n")
		if line != "GET "+want+" HTTP/1.1" {
			t.Errorf("%s: got %q", sent, line)
		}
	}
	// HTTP/2 carries bytes that would end a request line.
	for target, want := range map[string]string{"/a b HTTP/1.0": "/a%20b%20HTTP/1.0", "/a\x7f\tb": "/a%7F%09b", "/x\r\nY: z": "/x%0D%0AY:%20z"} {
		if got := string(appendTarget(nil, target)); got != want {
			t.Errorf("%q: got %q", target, got)
		}
	}
}

func TestHostIsSentInLowerCaseWithoutPort(t *testing.T) {
	for host, want := range map[string]string{"A.Test": "a.test", "a.test:80": "a.test", "[2001:DB8::1]:80": "[2001:db8::1]", "[::1]": "[::1]", "192.0.2.1:8080": "192.0.2.1"} {
		r := &http.Request{Host: host}
		if got := string(appendLower(nil, hostOf(r))); got != want {
			t.Errorf("%s: got %s", host, got)
		}
	}
}

func TestLineBreaksInValuesAreNotSent(t *testing.T) {
	if got := string(appendField(nil, "A", "b\r\nEvil: c\nd")); got != "A: b  Evil: c d\r\n" {
		t.Fatalf("got %q", got)
	}
}

func TestResponseHeaders(t *testing.T) {
	answer := "HTTP/1.1 299 Fine\r\nServer: Secret/1.0\r\nX-Svc-Error: fake\r\nx-svc-challenge: fake\r\nX-Accel-Redirect: /etc\r\nX-Request-Id: theirs\r\n" +
		"Set-Cookie: a=b\r\nSet-Cookie: __ew_pass=forged; Path=/\r\nset-cookie: c=d\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n" +
		"Proxy-Authenticate: x\r\nETag: \"e\"\r\nx-lower: yes\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok"
	o, _ := answering(t, answer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	res, err := http.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	res.Header.Del("Date")
	if got, want := fmt.Sprint(res.StatusCode, " ", res.Header, " ", string(body)),
		`299 map[Content-Length:[2] Etag:["e"] Set-Cookie:[a=b c=d] X-Empty:[] X-Lower:[yes] X-Request-Id:[req-00000001]] ok`; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	e.request = func(in *Request) {
		in.Response = func(status int, h http.Header) { h.Set("X-Seen", fmt.Sprint(status)); h.Del("X-Lower") }
	}
	res2, err := http.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res2.Body.Close()
	if res2.Header.Get("X-Seen") != "299" || res2.Header.Get("X-Lower") != "" {
		t.Fatalf("got %v", res2.Header)
	}
}

// What an origin may send, and what the client of the edge gets: status and body, "" and -1 for an answer that breaks
// off. reused says whether the connection may serve the next request.
func TestAnswersOfOrigins(t *testing.T) {
	unreachable := "edge: origin-unreachable"
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
		reused bool
	}{
		"length":                      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"no reason":                   {"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"line feeds only":             {"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", 200, "abc", true},
		"space around values":         {"HTTP/1.1 200 OK\r\nContent-Length: \t3 \t\r\n\r\nabc", 200, "abc", true},
		"same length twice":           {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"chunks":                      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", 200, "abc", true},
		"chunks, padded, upper":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n00A \r\n0123456789\r\n0\r\n\r\n", 200, "0123456789", true},
		"HTTP/1.0 to the end":         {"HTTP/1.0 200 OK\r\n\r\nabc", 200, "abc", false},
		"HTTP/1.1 to the end":         {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", 200, "abc", false},
		"HTTP/1.0 kept":               {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"no content":                  {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		"no content with a length":    {"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", 204, "", false},
		"not modified":                {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", 304, "", true},
		"interim answers":             {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"close":                       {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", false},
		"bytes after the body":        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n", 200, "abc", false},
		"coding and length":           {"HTTP/1.1 200 OK\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "abc", false},
		"large status":                {"HTTP/1.1 999 Odd\r\nContent-Length: 3\r\n\r\nabc", 999, "abc", true},
		"bytes above ASCII":           {"HTTP/1.1 200 \xff\r\nX-A: \xfe\xff\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"header of many buffers":      {"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 60<<10) + "\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"differing lengths":           {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 502, unreachable, false},
		"length list":                 {"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", 502, unreachable, false},
		"signed length":               {"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", 502, unreachable, false},
		"negative length":             {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", 502, unreachable, false},
		"empty length":                {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nabc", 502, unreachable, false},
		"hexadecimal length":          {"HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc", 502, unreachable, false},
		"huge length":                 {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999999\r\n\r\nabc", 502, unreachable, false},
		"unknown coding":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", 502, unreachable, false},
		"two codings":                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 502, unreachable, false},
		"two coding lines":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 502, unreachable, false},
		"coding in HTTP/1.0":          {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502, unreachable, false},
		"hidden coding":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 502, unreachable, false},
		"folded line":                 {"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"fold at the start":           {"HTTP/1.1 200 OK\r\n X-A: b\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"space before the colon":      {"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc", 502, unreachable, false},
		"no colon":                    {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\nabc", 502, unreachable, false},
		"no name":                     {"HTTP/1.1 200 OK\r\n: x\r\n\r\nabc", 502, unreachable, false},
		"zero byte":                   {"HTTP/1.1 200 OK\r\nX-A: b\x00c\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"carriage return in a value":  {"HTTP/1.1 200 OK\r\nX-A: b\rContent-Length: 9\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"carriage return in a name":   {"HTTP/1.1 200 OK\r\nX\rA: b\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"other version":               {"HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"HTTP/1.2":                    {"HTTP/1.2 200 OK\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"no version":                  {"200 OK\r\n\r\nabc", 502, unreachable, false},
		"two spaces":                  {"HTTP/1.1  200 OK\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"short status":                {"HTTP/1.1 20 OK\r\n\r\nabc", 502, unreachable, false},
		"long status":                 {"HTTP/1.1 2000 OK\r\n\r\nabc", 502, unreachable, false},
		"status below 100":            {"HTTP/1.1 099 OK\r\n\r\nabc", 502, unreachable, false},
		"signed status":               {"HTTP/1.1 +20 OK\r\n\r\nabc", 502, unreachable, false},
		"nothing":                     {"", 502, unreachable, false},
		"half a line":                 {"HTTP/1.1 200", 502, unreachable, false},
		"half a header":               {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", 502, unreachable, false},
		"header too large":            {"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"header without end":          {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 20<<10), 502, unreachable, false},
		"too many fields":             {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", maxFields+1) + "\r\n", 502, unreachable, false},
		"interim answers for ever":    {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100), 502, unreachable, false},
		"large interim answers":       {strings.Repeat("HTTP/1.1 103 Hints\r\nLink: "+strings.Repeat("x", 10<<10)+"\r\n\r\n", 10) + okAnswer, 502, unreachable, false},
		"another protocol":            {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n" + okAnswer, 502, unreachable, false},
		"body cut short":              {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", -1, "", false},
		"chunks cut short":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", -1, "", false},
		"chunk cut short":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", -1, "", false},
		"chunk without end":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n", -1, "", false},
		"chunk with line feeds":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n", -1, "", false},
		"chunk of a negative size":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", -1, "", false},
		"chunk of a huge size":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nabc\r\n0\r\n\r\n", -1, "", false},
		"chunk of no size":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;x\r\nabc\r\n0\r\n\r\n", -1, "", false},
		"chunk with 0x":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", -1, "", false},
		"extensions without end":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;" + strings.Repeat("x", 40<<10) + "\r\nabc\r\n0\r\n\r\n", -1, "", false},
		"extensions again and again":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 100) + "0\r\n\r\n", -1, "", false},
		"trailer of nonsense":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nnonsense\r\n\r\n", -1, "", false},
		"trailer too large":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: " + strings.Repeat("x", 65<<10) + "\r\n\r\n", -1, "", false},
		"one-byte chunks are no harm": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", 50_000) + "0\r\n\r\n", 200, strings.Repeat("a", 50_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := once(t, c.answer)
			if c.reused {
				o, _ = answering(t, c.answer)
			}
			e := newEdge(t, settings(), originAt("a", o.Addr().String()))
			for range 2 {
				res, err := http.Get(e.URL)
				if err != nil {
					if c.status != -1 {
						t.Fatal(err)
					}
					continue
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if c.status == -1 {
					if err == nil {
						t.Fatalf("a part was taken for the whole: %d %q", res.StatusCode, body)
					}
					continue
				}
				if err != nil || res.StatusCode != c.status || string(body) != c.body {
					t.Fatalf("got %d %.100q %v", res.StatusCode, body, err)
				}
			}
			if want := int64(2); !c.reused && o.connections.Load() != want || c.reused && o.connections.Load() != 1 {
				t.Fatalf("%d connections", o.connections.Load())
			}
		})
	}
}

func TestHeadAnswersHaveNoBody(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
	} {
		o, _ := answering(t, answer)
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		for range 3 {
			res, err := http.Head(e.URL)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%q: %v", answer, err)
			}
			if strings.Contains(answer, "300") != (res.ContentLength == 300) {
				t.Fatalf("%q: length %d", answer, res.ContentLength)
			}
		}
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	o, seen := answering(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Content-Length\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\nX-Svc-Error: no\r\nX-More: 8\r\n\r\n")
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	req, _ := http.NewRequestWithContext(t.Context(), "POST", e.URL, unknownLength{strings.NewReader("body")})
	req.Trailer = http.Header{"X-Client": {"later"}, "X-Svc-Evil": {"no"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "abc" {
		t.Fatalf("got %q %v", body, err)
	}
	if got := fmt.Sprint(res.Trailer); got != "map[X-More:[8] X-Sum:[7]]" {
		t.Fatalf("got %s", got)
	}
	got := <-seen
	if !strings.Contains(got, "\r\nTrailer: X-Client\r\n") || strings.Contains(got, "Evil") || !strings.HasSuffix(got, "\r\n\r\nbody|X-Client: later") {
		t.Fatalf("got %q", got)
	}
}

func TestHTTP2Clients(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	s := httpTLS(t, e.Config.Handler)
	res, err := s.Client().Post(s.URL+"/p%2Fq?x;y", "text/plain", unknownLength{strings.NewReader(strings.Repeat("b", 100_000))})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.ProtoMajor != 2 || string(body) != "ok" {
		t.Fatalf("got %s %q", res.Proto, body)
	}
	if got := <-seen; !strings.HasPrefix(got, "POST /p%2Fq?x;y HTTP/1.1\r\n") || !strings.HasSuffix(got, strings.Repeat("b", 100_000)) {
		t.Fatalf("got %.200q", got)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		okAnswer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 100 C\r\n\r\nHTTP/1.0 200 OK\r\n\r\nabc",
		"HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 304 N\nEtag: x\n\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
	} {
		f.Add([]byte(s), "GET")
		f.Add([]byte(s), "HEAD")
	}
	f.Fuzz(func(t *testing.T, data []byte, method string) {
		c := &conn{Conn: &memory{data: data}}
		a, err := c.readResponse(method, false)
		if err != nil {
			return
		}
		recorder := newRecorder()
		h := recorder.Header()
		a.copyHeader(h)
		recorder.WriteHeader(a.status)
		flush := flusher{w: recorder}
		deliverErr := c.deliver(recorder, a, &flush)
		for name, values := range h {
			for _, v := range values {
				if strings.ContainsAny(name+v, "\r\n\x00") {
					t.Fatalf("%q: %q passed", name, v)
				}
			}
		}
		// Whatever is accepted, the standard parser must read in the same way.
		r := bufio.NewReaderSize(strings.NewReader(string(data)), 128<<10)
		for {
			res, err := http.ReadResponse(r, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("net/http refuses: %v", err)
			}
			if res.StatusCode < 200 {
				continue
			}
			if res.StatusCode != a.status {
				t.Fatalf("status %d, net/http %d", a.status, res.StatusCode)
			}
			want, err := io.ReadAll(res.Body)
			if deliverErr == nil && (err != nil || string(want) != recorder.body.String()) {
				t.Fatalf("body %q, net/http %q %v", recorder.body.String(), want, err)
			}
			if deliverErr == nil && !a.close {
				left, _ := io.ReadAll(r)
				if ours := string(c.buf[c.r:c.w]) + string(c.Conn.(*memory).data); string(left) != ours {
					t.Fatalf("left %q, net/http %q", ours, left)
				}
			}
			return
		}
	})
}

// Whatever a client sends, the origin must see one request with one line for each field.
func FuzzHead(f *testing.F) {
	f.Add("/a?b", "Accept", "x", "close", "h.test")
	f.Add("/a b\r\nX: y", "X-Svc-Site", "x\r\n\r\nGET / HTTP/1.1", "X-Real-IP, Upgrade", "[::1]:80")
	f.Add("http://x?y z", "Transfer-Encoding", "chunked", "", "h\nx")
	f.Fuzz(func(t *testing.T, target, name, value, connection, host string) {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r > 255 || !tokenByte[byte(r)] }) || target == "" {
			return
		}
		r := &http.Request{Method: "PUT", RequestURI: target, Host: host, URL: &url.URL{Path: "/"}, Header: http.Header{"Connection": {connection}}, Trailer: http.Header{"X-Later": nil}}
		r.Header.Add(name, value)
		in := Request{ClientAddr: netip.MustParseAddr("192.0.2.1"), PeerAddr: netip.MustParseAddr("2001:db8::1"), Scheme: "https", RequestID: "id", CDNLoop: "loop"}
		for _, length := range []int64{-1, 0, 5} {
			head := string(in.head(nil, r, &Pool{}, &origin{}, length, false))
			lines := strings.Split(head, "\r\n")
			if n := len(lines); n < 3 || lines[n-1] != "" || lines[n-2] != "" {
				t.Fatalf("no single end: %q", head)
			}
			lines = lines[:len(lines)-2]
			if strings.Count(lines[0], " ") != 2 || !strings.HasPrefix(lines[0], "PUT ") || !strings.HasSuffix(lines[0], " HTTP/1.1") {
				t.Fatalf("got %q", lines[0])
			}
			seen := map[string]int{}
			for i, line := range lines {
				if line == "" || strings.ContainsAny(line, "\r\n") {
					t.Fatalf("line %d of %q", i, head)
				}
				if i > 0 {
					name, _, ok := strings.Cut(line, ":")
					if !ok || strings.ContainsAny(name, " \t") {
						t.Fatalf("line %q of %q", line, head)
					}
					seen[strings.ToLower(name)]++
				}
			}
			for _, once := range []string{"host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-request-id", "cdn-loop", "connection"} {
				if seen[once] != 1 {
					t.Fatalf("%s %d times in %q", once, seen[once], head)
				}
			}
			if (length < 0) != (seen["transfer-encoding"] == 1) || (length >= 0) != (seen["content-length"] == 1) || seen["upgrade"]+seen["keep-alive"] != 0 {
				t.Fatalf("got %q", head)
			}
		}
	})
}
