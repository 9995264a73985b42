package edge

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// compressing is an edge before an origin that answers as the test says.
type compressing struct {
	*edge
	t      *testing.T
	client *http.Client
	url    string
	// What the origin got last.
	asked http.Header
}

func startCompressing(t *testing.T, protocol int, answer http.HandlerFunc, rule func(*exchange.Exchange), entries ...*configv1.Entry) *compressing {
	t.Helper()
	c := &compressing{t: t}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked = r.Header.Clone()
		answer(w, r)
	}))
	t.Cleanup(origin.Close)
	port := uint32(origin.Listener.Addr().(*net.TCPAddr).Port)
	c.edge = newRuled(t, rule, append(entries,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(port, "a.com")))...)
	e := serveProtocol(t, c.edge, protocol, func(next http.Handler) http.Handler { return next })
	c.client, c.url = e.client(t, "a.com"), e.url
	return c
}

// open sends a request with fields as "Name: value".
func (c *compressing) open(method, target string, fields ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+target, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Host = "a.com"
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	res, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// get sends a request and decodes its answer.
func (c *compressing) get(method, target string, fields ...string) (*http.Response, string) {
	c.t.Helper()
	res := c.open(method, target, fields...)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(raw) == 0 {
		return res, ""
	}
	all, err := io.ReadAll(decoderOf(c.t, res.Header.Get("Content-Encoding"), strings.NewReader(string(raw))))
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(all)
}

func decoderOf(t *testing.T, coding string, from io.Reader) io.Reader {
	t.Helper()
	switch coding {
	case "gzip":
		r, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		return r
	case "br":
		return brotli.NewReader(from)
	case "zstd":
		r, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	return from
}

var page = strings.Repeat("<p>the same again and again</p>\n", 40)

// answering is an origin's answer with a header and the page.
func answering(status int, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = []string{fmt.Sprint(len(page))}
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, page)
	}
}

func allCodings(change func(*configv1.SiteCompression)) *configv1.Entry {
	m := &configv1.SiteCompression{
		Gzip:   &configv1.CodingSettings{Enabled: true, Level: 6, MinLength: 256},
		Brotli: &configv1.CodingSettings{Enabled: true, Level: 4, MinLength: 256},
		Zstd:   &configv1.CodingSettings{Enabled: true, Level: 3, MinLength: 256, Types: []string{"text/css"}},
	}
	change(m)
	return edgetest.Entry("site-compression", "a", m)
}

func asIs(*configv1.SiteCompression) {}

func noRule(*exchange.Exchange) {}

const everything = "Accept-Encoding: gzip, br, zstd"

// Which answers are compressed, and with what.
func TestWhichAnswersAreCompressed(t *testing.T) {
	html := "Content-Type: text/html; charset=utf-8"
	for _, c := range []struct {
		name     string
		settings func(*configv1.SiteCompression)
		rule     func(*exchange.Exchange)
		method   string
		ask      []string
		status   int
		answer   []string
		want     string
		varies   bool
	}{
		{name: "html", answer: []string{html}, want: "zstd", varies: true},
		{name: "in capitals", answer: []string{"Content-Type: TEXT/HTML"}, want: "zstd", varies: true},
		{name: "a type of one coding", answer: []string{"Content-Type: text/css"}, want: "zstd", varies: true},
		{name: "another client", ask: []string{"Accept-Encoding: gzip, br;q=0.1"}, answer: []string{html}, want: "gzip", varies: true},
		{name: "a client that says nothing", ask: []string{"X-Any: thing"}, answer: []string{html}, varies: true},
		{name: "403", status: 403, answer: []string{html}, want: "zstd", varies: true},
		{name: "404", status: 404, answer: []string{html}, want: "zstd", varies: true},
		{name: "500", status: 500, answer: []string{html}},
		{name: "a part", status: 206, answer: []string{html, "Content-Range: bytes 0-1279/9999"}, varies: true},
		{name: "a part of a type of one coding", status: 206, answer: []string{"Content-Type: text/css", "Content-Range: bytes 0-1279/9999"}, varies: true},
		{name: "a part of something", status: 206, answer: []string{html, "Content-Range: bytes 0-1279/*"}, varies: true},
		{name: "a part of what is not said", status: 206, answer: []string{html, "Content-Range: pages 1"}, varies: true},
		{name: "several parts, of any type", status: 206, answer: []string{"Content-Type: multipart/byteranges; boundary=x"}, varies: true},
		{name: "a part of an image", status: 206, answer: []string{"Content-Type: image/png", "Content-Range: bytes 0-1279/9999"}},
		{name: "a part of an event stream", status: 206, answer: []string{"Content-Type: text/event-stream", "Content-Range: bytes 0-1279/9999"}},
		{name: "a part, encoded", status: 206, answer: []string{html, "Content-Encoding: deflate", "Content-Range: bytes 0-1279/9999"}},
		{name: "a part, no-transform", status: 206, answer: []string{html, "Cache-Control: no-transform", "Content-Range: bytes 0-1279/9999"}},
		{name: "a part of what is too long", status: 206, settings: func(m *configv1.SiteCompression) { m.MaxLength = 9998 }, answer: []string{html, "Content-Range: bytes 0-1279/9999"}},
		{name: "a part of what is too short", status: 206, settings: func(m *configv1.SiteCompression) {
			m.Zstd.MinLength, m.Brotli.MinLength, m.Gzip.MinLength = 10000, 10000, 10000
		}, answer: []string{html, "Content-Range: bytes 0-1279/9999"}},
		{name: "a short part of what is long enough", status: 206, settings: func(m *configv1.SiteCompression) {
			m.Zstd.MinLength, m.Brotli.MinLength, m.Gzip.MinLength = 9999, 9999, 9999
		}, answer: []string{html, "Content-Range: bytes 0-1279/9999"}, varies: true},
		{name: "a part without settings of a site", status: 206, settings: func(m *configv1.SiteCompression) { m.Reset() }, answer: []string{html, "Content-Range: bytes 0-1279/9999"}},
		{name: "an image", answer: []string{"Content-Type: image/png"}},
		{name: "no type", answer: []string{"Content-Type: "}},
		{name: "encoded already", answer: []string{html, "Content-Encoding: deflate"}},
		{name: "no-transform", answer: []string{html, "Cache-Control: public, No-Transform"}},
		{name: "no-transform of the client", ask: []string{everything, "Cache-Control: no-transform"}, answer: []string{html}},
		{name: "too short", settings: func(m *configv1.SiteCompression) {
			m.Zstd.MinLength, m.Brotli.MinLength, m.Gzip.MinLength = 1281, 1281, 1281
		}, answer: []string{html}},
		{name: "too short for one", settings: func(m *configv1.SiteCompression) { m.Zstd.MinLength = 1281 }, answer: []string{html}, want: "br", varies: true},
		{name: "just long enough", settings: func(m *configv1.SiteCompression) { m.Zstd.MinLength, m.MaxLength = 1280, 1280 }, answer: []string{html}, want: "zstd", varies: true},
		{name: "too long", settings: func(m *configv1.SiteCompression) { m.MaxLength = 1279 }, answer: []string{html}},
		{name: "event stream", settings: func(m *configv1.SiteCompression) { m.Zstd.Types = []string{"text/event-stream"} }, answer: []string{"Content-Type: text/event-stream"}},
		{name: "gRPC", settings: func(m *configv1.SiteCompression) {
			m.Zstd.Types = []string{"application/grpc", "application/grpc+proto"}
		}, answer: []string{"Content-Type: application/grpc+proto"}},
		{name: "HEAD", method: "HEAD", answer: []string{html}, varies: true},
		{name: "off", settings: func(m *configv1.SiteCompression) { m.Reset() }, answer: []string{html}},
		{name: "switched off by a rule", rule: func(x *exchange.Exchange) { x.Overrides.Zstd = exchange.Off }, answer: []string{html}, want: "br", varies: true},
		{name: "all switched off", rule: func(x *exchange.Exchange) {
			x.Overrides.Zstd, x.Overrides.Brotli, x.Overrides.Gzip = exchange.Off, exchange.Off, exchange.Off
		}, answer: []string{html}},
		{name: "switched on, which the site does not have", settings: func(m *configv1.SiteCompression) { m.Zstd.Enabled = false },
			rule: func(x *exchange.Exchange) { x.Overrides.Zstd = exchange.On }, answer: []string{html}, want: "br", varies: true},
		{name: "a rule's order", rule: func(x *exchange.Exchange) {
			x.Overrides.Codings, x.Overrides.HasCodings = []exchange.Coding{exchange.Gzip, exchange.Zstd}, true
		}, answer: []string{html}, want: "gzip", varies: true},
		{name: "a rule's order, of what the site has not", settings: func(m *configv1.SiteCompression) { m.Gzip.Enabled = false }, rule: func(x *exchange.Exchange) {
			x.Overrides.Codings, x.Overrides.HasCodings = []exchange.Coding{exchange.Gzip}, true
		}, answer: []string{html}},
		{name: "none by a rule", rule: func(x *exchange.Exchange) { x.Overrides.HasCodings = true }, answer: []string{html}},
	} {
		settings, rule, ask, method, status := c.settings, c.rule, c.ask, c.method, c.status
		if settings == nil {
			settings = asIs
		}
		if rule == nil {
			rule = noRule
		}
		if ask == nil {
			ask = []string{everything}
		}
		if method == "" {
			method = "GET"
		}
		if status == 0 {
			status = 200
		}
		e := startCompressing(t, 1, answering(status, append(c.answer, `Etag: "tag"`, "Accept-Ranges: bytes")...), rule, allCodings(settings))
		res, body := e.get(method, "/", ask...)
		h := res.Header
		if method == "GET" && !strings.Contains(c.name, "encoded") && body != page {
			t.Errorf("%s: %d bytes", c.name, len(body))
		}
		coding := h.Get("Content-Encoding")
		if strings.Contains(c.name, "encoded") && coding == "deflate" {
			coding = ""
		}
		changed := c.want != "" || method == "HEAD"
		if coding != c.want || (h.Get("Vary") == "Accept-Encoding") != c.varies || (h.Get("Etag") == `W/"tag"`) != changed ||
			(h.Get("Accept-Ranges") == "") != changed || (h.Get("Content-Length") != fmt.Sprint(len(page))) != changed || res.StatusCode != status {
			t.Errorf("%s: %d %v", c.name, res.StatusCode, h)
		}
	}
}

// Without settings a site has gzip for what pages are made of.
func TestCompressionWithoutSettings(t *testing.T) {
	for contentType, want := range map[string]string{
		"text/html": "gzip", "text/plain": "gzip", "text/css": "gzip", "application/javascript": "gzip", "text/javascript": "gzip",
		"application/json": "gzip", "image/svg+xml": "gzip", "application/xml": "", "image/png": "", "text/event-stream": "",
	} {
		e := startCompressing(t, 1, answering(200, "Content-Type: "+contentType), noRule)
		res, body := e.get("GET", "/", everything)
		if got := res.Header.Get("Content-Encoding"); got != want || body != page {
			t.Errorf("%s: %q", contentType, got)
		}
	}
	e := startCompressing(t, 1, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page[:255]) }, noRule)
	if res, _ := e.get("GET", "/", everything); res.Header.Get("Content-Encoding") != "" {
		t.Errorf("255 bytes: %v", res.Header)
	}
}

// Answers of the edge itself are none of it.
func TestAnswersOfTheEdgeAreNotCompressed(t *testing.T) {
	e := startCompressing(t, 1, answering(200), func(x *exchange.Exchange) { x.Out.Group = "none" }, allCodings(asIs))
	res, body := e.get("GET", "/", everything, "Accept: text/html")
	if res.Header.Get("X-Svc-Error") != "no-origin" || res.Header.Get("Content-Encoding") != "" || !strings.Contains(body, "<") {
		t.Errorf("%v", res.Header)
	}
}

// What an origin is asked for, and what of it counts.
func TestOriginsAreAskedForIdentity(t *testing.T) {
	off := edgetest.Entry("site-compression", "a", &configv1.SiteCompression{})
	gzipOff := func(x *exchange.Exchange) { x.Overrides.Gzip = exchange.Off }
	edited := func(x *exchange.Exchange) {
		x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: "Accept-Encoding", Values: []string{"br"}})
	}
	for _, c := range []struct {
		name      string
		entry     *configv1.Entry
		rule      func(*exchange.Exchange)
		want      string
		vary, got string
	}{
		{"the edge compresses", allCodings(asIs), noRule, "", "Accept-Encoding, Cookie", "Cookie, Accept-Encoding"},
		{"a rule says otherwise", allCodings(asIs), edited, "", "accept-encoding", "Accept-Encoding"},
		{"by the preset", edgetest.Entry("site-compression", "b", &configv1.SiteCompression{}), noRule, "", "", "Accept-Encoding"},
		{"origins compress", off, noRule, "gzip, br, zstd", "Accept-Encoding, Cookie", "Accept-Encoding, Cookie"},
		{"origins compress, a rule is against it", off, gzipOff, "", "Accept-Encoding", ""},
	} {
		e := startCompressing(t, 1, answering(200, "Content-Type: text/html", "Vary: "+c.vary), c.rule, c.entry)
		res, _ := e.get("GET", "/", everything)
		if got := strings.Join(e.asked["Accept-Encoding"], "|"); got != c.want || strings.Join(res.Header["Vary"], "|") != c.got {
			t.Errorf("%s: the origin was asked for %q, the client is told %q", c.name, got, res.Header["Vary"])
		}
	}
}

// A client that has the compressed answer hears that it is still good, under the tag that it knows.
func TestConditionsOfCompressedAnswers(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"tag"`)
		// An origin that compares letter by letter.
		if strings.Contains(", "+r.Header.Get("If-None-Match")+",", `, "tag",`) {
			w.WriteHeader(304)
			return
		}
		answering(200, "Content-Type: text/html")(w, r)
	}
	e := startCompressing(t, 1, answer, noRule, allCodings(asIs))
	first, _ := e.get("GET", "/", everything)
	if tag := first.Header.Get("Etag"); tag != `W/"tag"` {
		t.Fatalf("%q", tag)
	}
	for asked, want := range map[string]string{
		`W/"tag"`: `W/"tag"`, `"tag"`: `"tag"`, `W/"tag", "tag"`: `"tag"`, `W/"other", W/"tag"`: `W/"tag"`,
	} {
		res, _ := e.get("GET", "/", everything, "If-None-Match: "+asked)
		if res.StatusCode != 304 || res.Header.Get("Etag") != want || res.Header.Get("Vary") != "Accept-Encoding" || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", asked, res.StatusCode, res.Header)
		}
	}
	if res, _ := e.get("GET", "/", everything, `If-None-Match: W/"other"`); res.StatusCode != 200 || e.asked.Get("If-None-Match") != `W/"other", "other"` {
		t.Errorf("%d %v", res.StatusCode, e.asked)
	}
	// A part of the origin's answer does not go with what was compressed.
	if e.get("GET", "/", everything, "Range: bytes=5-", `If-Range: W/"tag"`); e.asked.Get("If-Range") != `W/"tag"` {
		t.Errorf("%v", e.asked)
	}
	// Who lets origins compress leaves tags to them.
	e = startCompressing(t, 1, answer, noRule, edgetest.Entry("site-compression", "a", &configv1.SiteCompression{}))
	if e.get("GET", "/", everything, `If-None-Match: W/"tag"`); e.asked.Get("If-None-Match") != `W/"tag"` {
		t.Errorf("%v", e.asked)
	}
}

// Each piece that an origin sends reaches the client while the rest is still to come, over every protocol and coding.
func TestStreamsStayAliveWhileTheyAreCompressed(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		for _, coding := range []string{"gzip", "br", "zstd"} {
			next := make(chan struct{})
			e := startCompressing(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				for i := range 5 {
					fmt.Fprintf(w, "part %d\n", i)
					_ = http.NewResponseController(w).Flush()
					<-next
				}
			}, noRule, allCodings(asIs))
			res := e.open("GET", "/", "Accept-Encoding: "+coding)
			if res.Header.Get("Content-Encoding") != coding || res.ProtoMajor != protocol {
				t.Fatalf("%s %v", res.Proto, res.Header)
			}
			r := bufio.NewReader(decoderOf(t, coding, res.Body))
			for i := range 5 {
				line, err := r.ReadString('\n')
				if line != fmt.Sprintf("part %d\n", i) {
					t.Fatalf("%s %s: %q %v", res.Proto, coding, line, err)
				}
				next <- struct{}{}
			}
			if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
				t.Errorf("%s %s: %q %v", res.Proto, coding, rest, err)
			}
			res.Body.Close()
		}
	}
}

// An origin that breaks off in the middle is not made a whole answer of.
func TestBrokenAnswersStayBroken(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		begun := make(chan struct{})
		e := startCompressing(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, page)
			_ = http.NewResponseController(w).Flush()
			// Over HTTP/3 the end would overtake what is on its way.
			<-begun
			panic(http.ErrAbortHandler)
		}, noRule, allCodings(asIs))
		res := e.open("GET", "/", everything)
		close(begun)
		if _, err := io.Copy(io.Discard, res.Body); err == nil || res.Header.Get("Content-Encoding") != "zstd" {
			t.Errorf("%s: %v %v", res.Proto, err, res.Header)
		}
		res.Body.Close()
	}
}
