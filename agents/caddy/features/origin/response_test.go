package origin

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
)

func TestResponseHeaders(t *testing.T) {
	answer := "HTTP/1.1 299 Fine\r\nServer: Secret/1.0\r\nX-Svc-Error: fake\r\nx-svc-challenge: fake\r\nX-Accel-Redirect: /etc\r\nX-Request-Id: theirs\r\n" +
		"Set-Cookie: a=b\r\nSet-Cookie: __ew_pass=forged; Path=/\r\nSet-Cookie: ew_pass_http =forged\r\nset-cookie: c=d\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n" +
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
	e.answer = func(a *exchange.Answer) { a.Header.Set("X-Seen", fmt.Sprint(a.Status)); a.Header.Del("X-Lower") }
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
		"blank before the colon":      {"HTTP/1.1 200 OK\r\nX-Bad : 1\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		"blanks before any colon":     {"HTTP/1.1 200 OK\r\nX-Bad \t : 1\r\nX-Empty\t:\r\nContent-Length : 3\r\n\r\nabc", 200, "abc", true},
		"blank before one of two":     {"HTTP/1.1 200 OK\r\nContent-Length : 3\r\nContent-Length: 4\r\n\r\nabc", 502, unreachable, false},
		"blank and chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum : 1\r\n\r\n", 200, "abc", true},
		"blank, coding and length":    {"HTTP/1.1 200 OK\r\nContent-Length: 30\r\nTransfer-Encoding\t: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "abc", false},
		"blank after close":           {"HTTP/1.1 200 OK\r\nConnection : close\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", false},
		"blank within a name":         {"HTTP/1.1 200 OK\r\nX Bad: 1\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"blank within and after":      {"HTTP/1.1 200 OK\r\nContent-Length 9 : 1\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"another space":               {"HTTP/1.1 200 OK\r\nX-Bad\v: 1\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
		"blanks alone":                {"HTTP/1.1 200 OK\r\n \t: x\r\nContent-Length: 3\r\n\r\nabc", 502, unreachable, false},
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
		"interim answers for ever":    {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxInterim), 502, unreachable, false},
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
		"end of chunks with LF":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n", -1, "", false},
		"trailer with LF":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\n\r\n", -1, "", false},
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

// What a client did not announce comes too late for the stages that drop such names.
func TestTrailersCannotBeTakenForOtherFields(t *testing.T) {
	o, seen := answering(t, okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	answer := e.raw("POST / HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"4\r\nbody\r\n0\r\nX-Sum: 7\r\nX_Real_IP: 1\r\nX.Real.IP: 2\r\nX-Real-IP: 3\r\nX-Svc-Site: 4\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Fatalf("got %q", answer)
	}
	if got := <-seen; !strings.HasSuffix(got, "\r\n\r\nbody|X-Sum: 7") {
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

var blankBeforeColon = regexp.MustCompile("[ \t]:")

func TestBlanksBeforeColonsDoNotReachClients(t *testing.T) {
	o, _ := answering(t, "HTTP/1.1 200 OK\r\nX-Bad : 1\r\nX-Svc-Site : 2\r\nServer\t: 3\r\nSet-Cookie : __ew_pass=x\r\nX-Hop : 4\r\nConnection : X-Hop\r\nContent-Length: 2\r\n\r\nok")
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	answer := e.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.Contains(answer, "\r\nX-Bad: 1\r\n") {
		t.Errorf("got %q", answer)
	}
	// What the edge takes from responses it finds in this spelling, too.
	for _, gone := range []string{"Svc-Site", "Server", "__ew_", "X-Hop"} {
		if strings.Contains(answer, gone) {
			t.Errorf("%s is left in %q", gone, answer)
		}
	}
}

// Some origins say each second that they are still at work.
func TestManyInformationalResponsesAreBounded(t *testing.T) {
	o, _ := answering(t, strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim-1)+okAnswer)
	e := newEdge(t, settings(), originAt("a", o.Addr().String()))
	answer := e.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if n := strings.Count(answer, "HTTP/1.1 102 Processing\r\n"); n != maxInterim-1 || !strings.HasSuffix(answer, "ok") {
		t.Errorf("%d, and then %q", n, answer[max(0, len(answer)-300):])
	}
	more, _ := answering(t, strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim)+okAnswer)
	e.compile(settings(), originAt("a", more.Addr().String()))
	if answer := e.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, "HTTP/1.1 502") {
		t.Errorf("%q", answer[max(0, len(answer)-300):])
	}
}

// dropped takes informational responses for nobody.
type dropped struct{}

func (dropped) takeInterim(*response) {}

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
		a, err := c.readResponse(method, false, dropped{})
		if err != nil {
			return
		}
		recorder, h := new(gathered), http.Header{}
		a.copyHeader(h)
		deliverErr := c.deliver(recorder, a, new(http.Header))
		for name, values := range h {
			for _, v := range values {
				if strings.ContainsAny(name+v, "\r\n\x00") {
					t.Fatalf("%q: %q passed", name, v)
				}
			}
		}
		if blankBeforeColon.Match(data) {
			// net/http refuses it where RFC 9112 §5.1 has proxies remove it.
			return
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
			if deliverErr == nil && (err != nil || string(want) != recorder.String()) {
				t.Fatalf("body %q, net/http %q %v", recorder.String(), want, err)
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
