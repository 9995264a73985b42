package edge

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// The order of stages is the same for every protocol; what the node itself asks skips what concerns visitors.
func TestOneOrderOfStagesForEveryProtocol(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{}))
	h.ban(t, "a", "198.51.100.0/24")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = r.Header.Get("Test-Host")
		r.RemoteAddr = r.Header.Get("Test-Peer")
		_ = h.ServeHTTP(w, r, nil)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for _, http2 := range []bool{false, true} {
		client := server.Client()
		if !http2 {
			transport := client.Transport.(*http.Transport).Clone()
			transport.Protocols = new(http.Protocols)
			transport.Protocols.SetHTTP1(true)
			transport.TLSClientConfig.NextProtos = nil
			client = &http.Client{Transport: transport}
		}
		for _, c := range []struct{ method, host, peer, target, code string }{
			{"GET", "a.com", "192.0.2.1:1", "/", "no-origin"},
			{"GET", "b.com", "192.0.2.1:1", "/", "unknown-host"},
			{"GET", "a.com", "198.51.100.9:1", "/", "ip-banned"},
			{"GET", "a.com", "192.0.2.1:1", "/.svc/x", "not-found"},
			{"TRACE", "a.com", "192.0.2.1:1", "/", "method-not-allowed"},
			{"GET", "a.com", "192.0.2.1:1", "/" + strings.Repeat("x", maxTargetBytes), "uri-too-long"},
		} {
			r, _ := http.NewRequest(c.method, server.URL+c.target, nil)
			r.Header.Set("Test-Host", c.host)
			r.Header.Set("Test-Peer", c.peer)
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if got := res.Header.Get("X-Svc-Error"); got != c.code || (res.ProtoMajor == 2) != http2 {
				t.Errorf("%s %s %.20s over %s: %q, not %q", c.method, c.host, c.target, res.Proto, got, c.code)
			}
		}
	}
	all, local := namesOf(newPipeline(h.core, zap.NewNop(), false)), namesOf(newPipeline(h.core, zap.NewNop(), true))
	if !slices.Equal(all, namesOf(&pipeline{stages: rowsOf(order)})) {
		t.Errorf("%v", all)
	}
	for _, visitors := range []string{"bans", "cc", "cc-client", "lists", "challenge", "count"} {
		if slices.Contains(local, visitors) || !slices.Contains(all, visitors) {
			t.Errorf("%s: %v", visitors, local)
		}
	}
}

func namesOf(p *pipeline) (names []string) {
	for _, s := range p.stages {
		names = append(names, s.name)
	}
	return names
}

func rowsOf(rows []row) (stages []stage) {
	for _, r := range rows {
		stages = append(stages, stage{name: r.name})
	}
	return stages
}

// What was asked never changes, whatever is done to what an origin gets.
func TestWhatWasAskedNeverChanges(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	var before exchange.Inbound
	var header http.Header
	h.replace("cc", func(x *exchange.Exchange) *exchange.Answer {
		before, header = x.In, x.In.Header.Clone()
		x.Out.Target = exchange.RewrittenTarget("/other path", "b=c")
		x.Out.Method, x.Out.Host = "PUT", "other.com"
		x.Out.Edits = []exchange.HeaderEdit{{Name: "Accept"}, {Name: "X-New", Values: []string{"1"}}}
		return nil
	})
	r := request("GET", "a.com", "/path?a=b")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Connection", "X-Hop, keep-alive")
	r.Header.Set("X-Hop", "1")
	h.pipeline.finish = append(h.pipeline.finish, func(x *exchange.Exchange) {
		if !reflect.DeepEqual(x.In, before) || !reflect.DeepEqual(x.In.Header, header) {
			t.Errorf("%+v became %+v", before, x.In)
		}
		if x.Method() != "PUT" || x.Target().Raw != "/other%20path?b=c" {
			t.Errorf("%s %s", x.Method(), x.Target().Raw)
		}
	})
	if w, _ := h.send(r); w.Header().Get("X-Svc-Error") != "no-origin" {
		t.Errorf("%v", w.Header())
	}
}

// What denies matches the canonical path; what exempts needs the one spelling; the origin gets the raw one.
func TestOneReadingOfTheTarget(t *testing.T) {
	h := newProtected(t, platform(js))
	for target, want := range map[string]string{
		"/.svc/x": "not-found", "/a/../.svc/x": "not-found", "/%2esvc/x": "not-found", "//.svc//x": "not-found", "/%2e%2e/.svc/x": "not-found",
		"/.well-known/acme-challenge/t":         "",
		"/.well-known/acme-challenge/t?":        "js",
		"/.well-known/acme-challenge/t?x":       "js",
		"/.well-known/./acme-challenge/t":       "js",
		"//.well-known/acme-challenge/t":        "js",
		"/.well-known/acme-challenge/%74":       "js",
		"/x/../.well-known/acme-challenge/t":    "js",
		"/.well-known/acme-challenge/t/../../x": "js",
	} {
		if w, _ := h.send(request("GET", "a.com", target)); challengeOf(w) != want {
			t.Errorf("%s: %q, not %q", target, challengeOf(w), want)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w, _ := h.send(request(method, "a.com", "/.well-known/acme-challenge/t")); challengeOf(w) != "required" {
			t.Errorf("%s: %q", method, challengeOf(w))
		}
	}
	if w, _ := h.send(request("HEAD", "a.com", "/.well-known/acme-challenge/t")); challengeOf(w) != "" {
		t.Errorf("HEAD: %q", challengeOf(w))
	}
}

// Nobody asks for certificates more often than ten times a second; what is more is an ordinary request.
func TestValidationsArePaced(t *testing.T) {
	h := newProtected(t, platform(js))
	spared := 0
	for range 200 {
		if w, _ := h.send(request("GET", "a.com", "/.well-known/acme-challenge/t")); challengeOf(w) == "" {
			spared++
		}
	}
	// A slow machine takes several seconds for them.
	if spared < 10 || spared >= 200 {
		t.Errorf("%d of 200 were spared", spared)
	}
}

// A stage answers by returning an answer, never by writing: every answer leaves by one Send.
func TestNothingWritesToTheClientButSend(t *testing.T) {
	writes := map[string]bool{"WriteHeader": true, "Flush": true, "Hijack": true, "Writer": true, "NewResponseController": true}
	allowed := map[string]string{
		"exchange/send.go": "it sends", "exchange/sink.go": "it sends", "exchange/interim.go": "it sends", "exchange/leftover.go": "it sends", "exchange/behind.go": "flushes sinks", "exchange/body.go": "limits on reading",
		"listen/exchange.go": "a ban sets limits", "listen/http3body.go": "limits on reading", "listen/http3heads.go": "limits on reading",
		"listen/admit.go":              "evictions learn whose limits to set",
		"listen/h2c.go":                "takes the connection of HTTP/2 from a server of HTTP/1",
		"listen/stage.go":              "bans learn whose limits to set",
		"features/challenge/stitch.go": "compresses", "features/encode/body.go": "flushes sinks", "api/api.go": "the agent's socket", "core/metrics.go": "the agent's socket",
		"program/live/fixtures.go":  "an origin of tests",
		"features/cache/growing.go": "flushes sinks", "features/requestlog/row.go": "reads the header that left", "features/prefetch/fetch.go": "takes the answer of a request of its own", "features/origin/body.go": "flushes sinks", "features/origin/fetch.go": "flushes sinks", "features/origin/shared.go": "flushes sinks",
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel("..", path)
		if err != nil || d.IsDir() || !strings.ContainsRune(name, filepath.Separator) ||
			strings.HasPrefix(name, "gen") || strings.HasPrefix(name, "internal") || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || allowed[filepath.ToSlash(name)] != "" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if selected, ok := call.Fun.(*ast.SelectorExpr); ok && writes[selected.Sel.Name] {
					t.Errorf("%s calls %s: return an answer instead", name, selected.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// source is a body that does as it is told.
type source struct {
	copyTo func(exchange.Sink) error
	closed *int
}

// CopyTo does as it is told.
func (s source) CopyTo(sink exchange.Sink) error { return s.copyTo(sink) }

// Close counts.
func (s source) Close() { *s.closed++ }

// Every exchange ends in Finish exactly once: answered, refused, aborted, broken off, panicked, replaced.
func TestEveryExchangeFinishesOnce(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	finished, closed := 0, 0
	h.pipeline.finish = append(h.pipeline.finish, func(*exchange.Exchange) { panic("in the first of them") }, func(*exchange.Exchange) { finished++ })
	body := func(copyTo func(exchange.Sink) error) exchange.Stage {
		return func(x *exchange.Exchange) *exchange.Answer {
			a := x.RespondFrom(exchange.FromOrigin, 200)
			a.Body = source{copyTo, &closed}
			return a
		}
	}
	for name, c := range map[string]struct {
		stage   exchange.Stage
		aborted bool
	}{
		"answered":   {body(func(s exchange.Sink) error { return s.Write([]byte("ok")) }), false},
		"refused":    {func(x *exchange.Exchange) *exchange.Answer { closed++; return x.Respond(403) }, false},
		"dropped":    {func(x *exchange.Exchange) *exchange.Answer { closed++; return x.Drop() }, true},
		"broken off": {body(func(exchange.Sink) error { return errors.New("origin is gone") }), true},
		"panicked":   {body(func(exchange.Sink) error { panic("in the body") }), true},
		"aborted":    {func(*exchange.Exchange) *exchange.Answer { closed++; panic(http.ErrAbortHandler) }, true},
		"replaced": {func(x *exchange.Exchange) *exchange.Answer {
			_ = body(nil)(x)
			return x.Respond(502)
		}, false},
	} {
		finished, closed = 0, 0
		h.replace("fetch", c.stage)
		if _, aborted := h.send(request("GET", "a.com", "/")); aborted != c.aborted || finished != 1 || closed != 1 {
			t.Errorf("%s: aborted %v, finished %d times, closed %d times", name, aborted, finished, closed)
		}
	}
}

// A panic in a response stage leaves the others their turn, and the answer.
func TestPanicOfAResponseStageCostsNothingElse(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	panics := responseStage{"panics", exchange.FromAll, func(*exchange.Exchange, *exchange.Answer) { panic("in a response stage") }}
	onlyOrigin := responseStage{"of origins", exchange.FromOrigin, func(_ *exchange.Exchange, a *exchange.Answer) { a.Header.Set("X-Of-Origin", "1") }}
	h.pipeline.response = append([]responseStage{panics, onlyOrigin}, h.pipeline.response...)
	w, aborted := h.send(request("GET", "a.com", "/"))
	if aborted || w.Code != 502 || w.Header().Get("X-Request-Id") == "" || w.Header().Get("X-Of-Origin") != "" {
		t.Errorf("%v %d %v", aborted, w.Code, w.Header())
	}
}

// A stage of a site that does not use a feature costs no memory; the answers that the edge makes take few pieces of it.
func TestStagesCostNoMemory(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	r := request("GET", "a.com", "/")
	x := h.pipeline.begin(httptest.NewRecorder(), r, time.Now())
	x.Tables = h.core.Tables()
	for _, s := range h.pipeline.stages {
		if s.name == "limits" {
			break
		}
		run := s.run
		allowed := map[string]float64{"normalise": 2}[s.name]
		if got := testing.AllocsPerRun(100, func() {
			if run(x) != nil {
				t.Fatalf("%s answered", s.name)
			}
		}); got > allowed {
			t.Errorf("%s: %v pieces of memory", s.name, got)
		}
	}
}

func BenchmarkStages(b *testing.B) {
	h := newHandler(b, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	w := httptest.NewRecorder()
	r := request("GET", "a.com", "/")
	h.replace("fetch", func(x *exchange.Exchange) *exchange.Answer { return x.RespondFrom(exchange.FromOrigin, 200) })
	b.ReportAllocs()
	for b.Loop() {
		if !h.pipeline.serve(h.pipeline.begin(w, r, time.Now())) {
			b.Fatal("dropped")
		}
	}
}

// Header fields and targets that are too large get the edge's own pages and codes.
func TestTooLargeHeadersAndTargets(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		code   string
	}{
		"the longest target": {func(r *http.Request) { r.RequestURI = "/" + strings.Repeat("x", maxTargetBytes-1) }, 502, "no-origin"},
		"a target too long":  {func(r *http.Request) { r.RequestURI = "/" + strings.Repeat("x", maxTargetBytes) }, 414, "uri-too-long"},
		"the largest field": {func(r *http.Request) {
			r.Header.Set("Cookie", strings.Repeat("x", maxFieldBytes-len("Cookie")-fieldExtra))
		}, 502, "no-origin"},
		"a field too large": {func(r *http.Request) {
			r.Header.Set("Cookie", strings.Repeat("x", maxFieldBytes-len("Cookie")-fieldExtra+1))
		}, 431, "header-too-large"},
		"one that is dropped":   {func(r *http.Request) { r.Header["X_a"] = []string{strings.Repeat("x", maxFieldBytes)} }, 431, "header-too-large"},
		"a header of many":      {func(r *http.Request) { manyFields(r, 4) }, 502, "no-origin"},
		"a header of too many":  {func(r *http.Request) { manyFields(r, 5) }, 431, "header-too-large"},
		"one name, many values": {func(r *http.Request) { r.Header["X-A"] = slices.Repeat([]string{strings.Repeat("x", 1000)}, 40) }, 431, "header-too-large"},
	} {
		r := request("GET", "a.com", "/")
		c.change(r)
		if w, _ := h.send(r); w.Code != c.status || w.Header().Get("X-Svc-Error") != c.code {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

func TestAClusterCanAcceptLargerHeaders(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	withField := func(size int) int {
		r := request("GET", "a.com", "/")
		r.Header.Set("Authorization", strings.Repeat("x", size-len("Authorization")-fieldExtra))
		w, _ := h.send(r)
		return w.Code
	}
	const token = 12 << 10
	if status := withField(token); status != 431 {
		t.Errorf("without the setting: %d", status)
	}
	for _, c := range []struct {
		limit uint32
		size  int
		want  int
	}{
		{token, token, 502}, {token, token + 1, 431}, {64 << 10, 64 << 10, 502},
		// An entry that cannot be used leaves the one before.
		{64<<10 + 1, 64 << 10, 502}, {0, 64 << 10, 502},
	} {
		edgetest.Change(t, h.core, []*configv1.Entry{edgetest.Entry("header-limit", "", &configv1.HeaderLimit{FieldBytes: c.limit})})
		if status := withField(c.size); status != c.want {
			t.Errorf("a field of %d bytes, limit %d: %d, not %d", c.size, c.limit, status, c.want)
		}
	}
	r := request("GET", "a.com", "/")
	manyFields(r, 12)
	if w, _ := h.send(r); w.Code != 502 {
		t.Errorf("fields of 84 KiB in all: %d", w.Code)
	}
	manyFields(r, 13)
	if w, _ := h.send(r); w.Code != 431 {
		t.Errorf("fields of 91 KiB in all: %d", w.Code)
	}
}

func manyFields(r *http.Request, n int) {
	for i := range n {
		r.Header.Set(fmt.Sprint("X-", i), strings.Repeat("x", 7<<10))
	}
}

// Fields with names that others could read as other names are counted, and the first of each is logged.
func TestDroppedNamesAreCounted(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	for range 3 {
		r := request("GET", "a.com", "/")
		r.Header["X_Real_IP"], r.Header["X.A"], r.Header["X-Kept"] = []string{"1"}, []string{"2"}, []string{"3"}
		h.send(r)
	}
	log := names.Of(h.core)
	if n := log.total.Load(); n != 6 || len(log.seen) != 2 {
		t.Errorf("%d fields, %d names", n, len(log.seen))
	}
	for i := range 2 * maxNames {
		log.note("a", []string{fmt.Sprint("X_", i)}, 1)
	}
	if len(log.seen) > maxNames {
		t.Errorf("%d names are remembered", len(log.seen))
	}
}

// Figures of the stages: answers by code and stage; times only while somebody reads them.
func TestFiguresOfTheStages(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	text := func() string {
		var b strings.Builder
		allFigures.Of(h.core).WriteMetrics(&b)
		return b.String()
	}
	ask := func() {
		for range 2 * sampleEvery {
			h.send(request("GET", "b.com", "/"))
		}
	}
	ask()
	first := text()
	if !strings.Contains(first, `svc_edge_answers_total{stage="unknown-host",code="unknown-host"} 32`) || !strings.Contains(first, `svc_edge_stage_seconds_count{stage="site"} 0`) {
		t.Errorf("%s", first)
	}
	ask()
	if second := text(); !strings.Contains(second, `code="unknown-host"} 64`) || !strings.Contains(second, `svc_edge_stage_seconds_count{stage="site"} 2`) {
		t.Errorf("%s", second)
	}
}

type shortTunnel struct{}

// Join says one word to the client.
func (shortTunnel) Join(client net.Conn, _ []byte) { _, _ = io.WriteString(client, "tunnelled") }

// An exchange whose connection was taken over ends once, too, with the tunnel.
func TestHijackedExchangeFinishesOnce(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(0, "a.com")))
	finished := make(chan int, 10)
	h.pipeline.finish = append(h.pipeline.finish, func(x *exchange.Exchange) { finished <- 1 })
	h.replace("fetch", func(x *exchange.Exchange) *exchange.Answer {
		a := x.RespondFrom(exchange.FromOrigin, http.StatusSwitchingProtocols)
		a.Header["Connection"], a.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
		a.Upgrade = shortTunnel{}
		return a
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = h.ServeHTTP(w, r, nil) }))
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 101 ") || !strings.HasSuffix(string(all), "\r\n\r\ntunnelled") {
		t.Errorf("%q %v", all, err)
	}
	<-finished
	if len(finished) != 0 {
		t.Error("it finished more than once")
	}
}
