package origin

import (
	"bufio"
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

// fields returns the header lines of a raw request, sorted, without the request line.
func fields(head string) []string {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")[1:]
	slices.Sort(lines)
	return lines
}

func TestRequestHeaders(t *testing.T) {
	o, seen := answering(t, okAnswer)
	own := []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: site.test", "X-Real-IP: 192.0.2.77", "X-Request-Id: req-00000001"}
	loop := "CDN-Loop: svc-0123456789abcdef"
	xff := "X-Forwarded-For: 127.0.0.1"
	for name, c := range map[string]struct {
		sent string
		want []string
		in   func(*exchange.Exchange)
		host string
	}{
		"nothing of the client's": {"", []string{"Host: site.test", loop, xff}, nil, ""},
		"ordinary fields pass": {"Accept: a\r\nAccept: b\r\nCookie: x=y\r\nUser-Agent: ü\r\nAuthorization: Basic x\r\nVia: 1.1 a\r\n",
			[]string{"Host: site.test", "Accept: a", "Accept: b", "Cookie: x=y", "User-Agent: ü", "Authorization: Basic x", "Via: 1.1 a", loop, xff}, nil, ""},
		"what the edge says cannot be forged": {"X-Real-IP: 1.1.1.1\r\nX-Forwarded-Proto: gopher\r\nX-Request-Id: evil-id-1\r\nX-Svc-Site: s\r\nx-svc-anything: s\r\n",
			[]string{"Host: site.test", loop, xff}, nil, ""},
		"nobody says where a request really was to go": {"Forwarded: for=1.1.1.1;host=evil.test\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Port: 1\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n",
			[]string{"Host: site.test", loop, xff}, nil, ""},
		"the port that was asked": {"X-Forwarded-Port: 1\r\nConnection: X-Forwarded-Port, X-Forwarded-Host\r\n", []string{"Host: site.test", loop, xff, "X-Forwarded-Port: 8443"},
			func(x *exchange.Exchange) { x.In.Port = 8443 }, ""},
		"edits come last": {"X-Gone: 1\r\nX-New: old\r\nX-More: 1\r\n", []string{"Host: other.test:99", loop, xff, "X-New: new", "X-More: 1", "X-More: 2"},
			func(x *exchange.Exchange) {
				x.Out.Host = "Other.test:99"
				x.Out.Edits = []exchange.HeaderEdit{{Name: "X-Gone"}, {Name: "X-New", Values: []string{"new"}}, {Name: "X-More", Values: []string{"2"}, Add: true}}
			}, ""},
		"fields of one hop end here": {"Keep-Alive: 1\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nTE: gzip\r\nHTTP2-Settings: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings, X-Mine\r\nX-Mine: 1\r\n",
			[]string{"Host: site.test", loop, xff}, nil, ""},
		"Connection cannot remove the edge's fields": {"CDN-Loop: other; a=b\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: CDN-Loop, X-Real-IP, X-Forwarded-For, Host, X-Request-Id\r\n",
			[]string{"Host: site.test", "CDN-Loop: other; a=b, svc-0123456789abcdef", "X-Forwarded-For: 9.9.9.9, 127.0.0.1"}, nil, ""},
		"Connection cannot remove fields that are for the origin": {"Authorization: Basic x\r\nCookie: a=b\r\nIf-None-Match: x\r\nConnection: authorization, Cookie, if-none-match, X-Mine\r\nX-Mine: 1\r\n",
			[]string{"Host: site.test", "Authorization: Basic x", "Cookie: a=b", "If-None-Match: x", loop, xff}, nil, ""},
		"loops of several lines are kept": {"CDN-Loop: a\r\nCDN-Loop: b\r\n", []string{"Host: site.test", "CDN-Loop: a, b, svc-0123456789abcdef", xff}, nil, ""},
		"trailers are welcome":            {"TE: gzip;q=0.5, trailers\r\nConnection: TE\r\n", []string{"Host: site.test", "TE: trailers", "Connection: TE", loop, xff}, nil, ""},
		"trailers by a list of lines":     {"TE: gzip\r\nTE: Trailers\r\n", []string{"Host: site.test", "TE: trailers", "Connection: TE", loop, xff}, nil, ""},
		"codings alone are of one hop":    {"TE: gzip, deflate;q=0.5\r\nConnection: TE\r\n", []string{"Host: site.test", loop, xff}, nil, ""},
		"names of WebSocket are spelled as RFC 6455 has them": {"sec-websocket-key: a\r\nSEC-WEBSOCKET-VERSION: 8\r\nSec-Websocket-Protocol: b\r\nSec-Websocket-Extensions: c\r\nSec-Websocket-Other: d\r\nSec-Fetch-Mode: e\r\n",
			[]string{"Host: site.test", "Sec-WebSocket-Key: a", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Protocol: b", "Sec-WebSocket-Extensions: c", "Sec-Websocket-Other: d", "Sec-Fetch-Mode: e", loop, xff}, nil, ""},
		"also those that rules set": {"", []string{"Host: site.test", "Sec-WebSocket-Protocol: mine", loop, xff},
			func(x *exchange.Exchange) {
				x.Out.Edits = []exchange.HeaderEdit{{Name: "Sec-Websocket-Protocol", Values: []string{"mine"}}}
			}, ""},
		"an expectation is met here": {"Expect: 100-continue\r\n", []string{"Host: site.test", loop, xff}, nil, ""},
		"chain of several proxies":   {"X-Forwarded-For: 9.9.9.9, 8.8.8.8\r\nX-Forwarded-For: 7.7.7.7\r\n", []string{"Host: site.test", loop, "X-Forwarded-For: 9.9.9.9, 8.8.8.8, 7.7.7.7, 127.0.0.1"}, nil, ""},
		"dropped chain in direct mode": {"X-Forwarded-For: 9.9.9.9\r\n", []string{"Host: site.test", loop, xff},
			func(x *exchange.Exchange) { x.In.HideForwardedFor = true }, ""},
		"the chain ends with the other end of the connection": {"X-Forwarded-For: 9.9.9.9\r\n", []string{"Host: site.test", loop, "X-Forwarded-For: 9.9.9.9, 198.51.100.1"},
			func(x *exchange.Exchange) { x.In.Peer = netip.MustParseAddr("198.51.100.1") }, ""},
		"host of the origin": {"", []string{"Host: Other.test:8080", loop, xff}, nil, "Other.test:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			origin := originAt("a", o.Addr().String())
			origin.HostHeader = c.host
			e := newEdge(t, settings(), origin)
			e.request = c.in
			answer := e.raw("GET / HTTP/1.1\r\nHost: Site.TEST\r\n" + c.sent + "Connection: close\r\n\r\n")
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

// Applications compare Origin with Host: a port that is not the scheme's own belongs to both (RFC 9110 §7.2).
func TestOriginsSeeThePortOfTheHost(t *testing.T) {
	for _, c := range []struct{ scheme, host, want string }{
		{"http", "site.test", "site.test"},
		{"http", "Site.TEST:8082", "site.test:8082"},
		{"http", "site.test.:8082", "site.test:8082"},
		{"http", "site.test:80", "site.test"},
		{"http", "site.test:0080", "site.test"},
		{"http", "site.test:443", "site.test:443"},
		{"http", "site.test:08082", "site.test:8082"},
		{"http", "site.test:", "site.test"},
		{"http", "site.test:0", "site.test"},
		{"http", "site.test:65535", "site.test:65535"},
		{"http", "site.test:65536", "site.test"},
		{"https", "site.test:443", "site.test"},
		{"https", "site.test:80", "site.test:80"},
		{"https", "site.test:8443", "site.test:8443"},
		{"http", "192.0.2.1:8082", "192.0.2.1:8082"},
		{"http", "[2001:DB8::1]:8082", "[2001:db8::1]:8082"},
		{"http", "[2001:db8::1]:80", "[2001:db8::1]"},
		{"https", "[2001:db8::1]:443", "[2001:db8::1]"},
		{"http", "[2001:db8::1]", "[2001:db8::1]"},
		{"http", "", ""},
	} {
		if got := string(appendAuthority(nil, c.host, c.scheme)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.scheme, c.host, got, c.want)
		}
	}

	o, seen := answering(t, okAnswer)
	for scheme, want := range map[string]string{"http": "site.test:443", "https": "site.test"} {
		e := newEdge(t, settings(), originAt("a", o.Addr().String()))
		e.request = func(x *exchange.Exchange) { x.In.Scheme = scheme }
		e.raw("GET / HTTP/1.1\r\nHost: Site.test:443\r\nConnection: close\r\n\r\n")
		got := fields(<-seen)
		for _, line := range []string{"Host: " + want, "X-Forwarded-Host: " + want} {
			if !slices.Contains(got, line) {
				t.Errorf("%s: no %q in %q", scheme, line, got)
			}
		}
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
		"x:/p?://other.test/q":    "/p?://other.test/q",
		"x:///p?://other.test/q":  "/p?://other.test/q",
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

func TestLineBreaksInValuesAreNotSent(t *testing.T) {
	if got := string(appendField(nil, "A", "b\r\nEvil: c\nd")); got != "A: b  Evil: c d\r\n" {
		t.Fatalf("got %q", got)
	}
}

// The path an origin reads is the path the edge looked at.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/a/../b?c", "//a/b", "/%2e%2e/a#b", "http://a/b?c", "http://a?b://c/d", "x:/a?b://c/d", "x:///a://b", "http://[::1]:8/a", "*", "x:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil || r.URL.Opaque != "" {
			return
		}
		sent := string(appendTarget(nil, exchangetest.New(httptest.NewRecorder(), r).In.Target.Raw))
		read, err := url.ParseRequestURI(sent)
		if err != nil {
			t.Fatalf("%q is sent as %q: %v", target, sent, err)
		}
		if read.Path != cmp.Or(r.URL.Path, "/") {
			t.Fatalf("%q is sent as %q: %q and not %q", target, sent, read.Path, r.URL.Path)
		}
	})
}

// A head of thousands of fields, and of as many names in Connection.
func BenchmarkNamesInConnection(b *testing.B) {
	r := &http.Request{Method: "GET", RequestURI: "/", Host: "h.test", URL: &url.URL{Path: "/"}, Header: http.Header{}}
	names := numbered("N%d", 2500)
	for _, name := range names {
		r.Header["X"+name] = []string{"v"}
	}
	r.Header["Connection"] = []string{strings.Join(names, ",")}
	t := &fetch{Fetcher: Fetcher{Pool: &Pool{}}}
	x := exchangetest.New(httptest.NewRecorder(), r)
	t.in, t.out = &x.In, &x.Out
	for range b.N {
		t.appendHead(nil, &origin{})
	}
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
		x := exchangetest.New(httptest.NewRecorder(), r)
		x.In.Client, x.In.Peer, x.In.ID = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), "id"
		for _, length := range []int64{-1, 0, 5} {
			way := &fetch{Fetcher: Fetcher{CDNLoop: "loop", Pool: &Pool{}}, in: &x.In, out: &x.Out, length: length}
			head := string(way.appendHead(nil, &origin{}))
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
			for _, once := range []string{"host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-request-id", "cdn-loop", "connection"} {
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
