package edge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// gathering is an edge over one protocol, before an origin that counts its connections and requests, and answers with what
// it got.
type gathering struct {
	*protocolEdge
	h *edge
	// The edge reads bodies of so many requests, or read them.
	reading            atomic.Int64
	connections, asked atomic.Int64
	reached            chan struct{}
	site               *configv1.Site
}

// overEachGathering runs a check over every protocol.
func overEachGathering(t *testing.T, check func(t *testing.T, g *gathering)) {
	for _, protocol := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("HTTP %d", protocol), func(t *testing.T) { check(t, startGathering(t, protocol)) })
	}
}

func startGathering(t *testing.T, protocol int) *gathering {
	g := &gathering{reached: make(chan struct{}, 100)}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		g.reached <- struct{}{}
		digest := sha256.New()
		n, err := io.Copy(digest, r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "%d %d %x", r.ContentLength, n, digest.Sum(nil))
	}))
	origin.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			g.connections.Add(1)
		}
	}
	origin.Start()
	t.Cleanup(origin.Close)
	g.site = edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")
	g.h = newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", g.site))
	// The folder of the spool goes after the last request.
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	g.protocolEdge = serveProtocol(t, g.h, protocol, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			r.Body = &watchedBody{r.Body, g, false}
			next.ServeHTTP(w, r)
		})
	})
	return g
}

// watchedBody says when reading begins.
type watchedBody struct {
	io.ReadCloser
	g     *gathering
	begun bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.g.reading.Add(1)
	}
	return b.ReadCloser.Read(p)
}

func (g *gathering) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// upload is a request whose body the test writes. Its length is announced where it is not negative.
type upload struct {
	*io.PipeWriter
	done chan struct{}
	// The response, once done.
	status int
	code   string
	text   string
	err    error
}

func (g *gathering) upload(t *testing.T, c *http.Client, length int64) *upload {
	t.Helper()
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.ContentLength = "a.com", length
	u := &upload{PipeWriter: writer, done: make(chan struct{})}
	t.Cleanup(func() {
		cancel()
		writer.CloseWithError(context.Canceled)
		<-u.done
	})
	go func() {
		defer close(u.done)
		res, err := c.Do(r)
		if u.err = err; err != nil {
			return
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		u.status, u.code, u.text, u.err = res.StatusCode, res.Header.Get("X-Svc-Error"), string(text), err
	}()
	return u
}

func got(length, n int64, content []byte) string {
	return fmt.Sprintf("%d %d %x", length, n, sha256.Sum256(content))
}

// Slow uploads reach no origin before they are whole, over however many connections they come.
func TestSlowUploadsHoldNoOrigin(t *testing.T) {
	overEachGathering(t, func(t *testing.T, g *gathering) {
		const many = 100
		var c *http.Client
		uploads := make([]*upload, many)
		for i := range uploads {
			if i%50 == 0 {
				c = g.client(t, "a.com")
			}
			uploads[i] = g.upload(t, c, []int64{-1, 512}[i%2])
			_, _ = uploads[i].Write(bytes.Repeat([]byte("x"), 256))
		}
		g.until(t, "all bodies are read", func() bool { return g.reading.Load() == many })
		if n := g.connections.Load(); n != 0 {
			t.Errorf("%d connections to the origin", n)
		}
		for _, u := range uploads[:2] {
			_, _ = u.Write(bytes.Repeat([]byte("x"), 256))
			_ = u.Close()
			if <-u.done; u.status != 200 || u.text != got(512, 512, bytes.Repeat([]byte("x"), 512)) {
				t.Errorf("%d %s %v", u.status, u.text, u.err)
			}
		}
		if n := g.asked.Load(); n != 2 {
			t.Errorf("the origin was asked %d times", n)
		}
	})
}

// A client that leaves while its body is gathered was never there for the origin.
func TestUploadsThatBreakOffReachNoOrigin(t *testing.T) {
	overEachGathering(t, func(t *testing.T, g *gathering) {
		c := g.client(t, "a.com")
		for _, size := range []int{100, 100_000} {
			before := g.reading.Load()
			u := g.upload(t, c, -1)
			_, _ = u.Write(make([]byte, size))
			g.until(t, "the body is read", func() bool { return g.reading.Load() == before+1 })
			u.CloseWithError(errors.New("gone"))
			if <-u.done; u.err == nil && u.status == 200 {
				t.Errorf("%d %s", u.status, u.text)
			}
		}
		g.until(t, "nothing is kept", func() bool { return core.Spool.Of(g.h.core).Files.Held() == 0 })
		if n := g.connections.Load(); n != 0 {
			t.Errorf("%d connections to the origin", n)
		}
	})
}

// The origin gets the same bytes whatever the size, and a length where the body was whole before it was asked.
func TestSizesOfGatheredBodies(t *testing.T) {
	const memory, most = 64 << 10, 16 << 20
	content := make([]byte, most+1)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	overEachGathering(t, func(t *testing.T, g *gathering) {
		c := g.client(t, "a.com")
		for _, size := range []int64{1, memory - 1, memory, memory + 1, most - 1, most, most + 1} {
			for _, announced := range []bool{true, false} {
				body := io.Reader(bytes.NewReader(content[:size]))
				if !announced {
					body = struct{ io.Reader }{body}
				}
				res, text := g.ask(t, c, http.MethodPost, "/", "a.com", body)
				whole := text == got(size, size, content[:size]) && (announced || size <= most)
				// At the limit the end may come with the last bytes, or behind them.
				longer := text == got(-1, size, content[:size]) && !announced && size >= most
				if res.StatusCode != 200 || !whole && !longer {
					t.Errorf("%d, announced %v: %d %s", size, announced, res.StatusCode, text)
				}
			}
		}
		if n := core.Spool.Of(g.h.core).Files.Held(); n != 0 {
			t.Errorf("%d bytes are kept", n)
		}
	})
}

// streamsBodies is the entry of a site with request buffering off.
func streamsBodies() *configv1.Entry {
	return edgetest.Entry("site-requests", "a", &configv1.SiteRequests{StreamBodies: true})
}

// Bodies reach the origin as they come where the site wants it, where the spool is full, and beyond what is gathered.
func TestBodiesThatAreNotGathered(t *testing.T) {
	const most = 16 << 20
	overEachGathering(t, func(t *testing.T, g *gathering) {
		c := g.client(t, "a.com")
		check := func(what string, size int) {
			t.Helper()
			content := make([]byte, size+1)
			u := g.upload(t, c, -1)
			_, _ = u.Write(content[:size])
			select {
			case <-g.reached:
			case <-u.done:
				t.Fatalf("%s: %d %v", what, u.status, u.err)
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: the origin is not asked", what)
			}
			_, _ = u.Write(content[size:])
			_ = u.Close()
			if <-u.done; u.status != 200 || u.text != got(-1, int64(len(content)), content) {
				t.Errorf("%s: %d %s %v", what, u.status, u.text, u.err)
			}
		}
		check("a long body", most)
		g.h.change(t, streamsBodies())
		check("a site without buffering", 10)
		g.h.change(t, edgetest.Entry("site-requests", "a", &configv1.SiteRequests{}))
		core.Spool.Of(g.h.core).Files.Most = 0
		check("a full spool", 100_000)
		var figures strings.Builder
		for _, w := range core.Each[interface{ WriteMetrics(io.Writer) }](g.h.core) {
			w.WriteMetrics(&figures)
		}
		for _, figure := range []string{"whole", "long", "spool_full", "unbuffered"} {
			want := 1
			if figure == "whole" {
				want = 0
			}
			if line := fmt.Sprintf("svc_edge_request_bodies_total{sent=%q} %d\n", figure, want); !strings.Contains(figures.String(), line) {
				t.Errorf("not %s", line)
			}
		}
	})
}

// Whoever expects to be told to go on is told before an origin is asked, and not where the announced body is too large.
func TestGatheringTellsToGoOn(t *testing.T) {
	g := startGathering(t, 1)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a.com\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	want := "HTTP/1.1 100 Continue\r\n\r\n"
	told := make([]byte, len(want))
	if _, err := io.ReadFull(conn, told); err != nil || string(told) != want || g.connections.Load() != 0 {
		t.Errorf("%q %v, %d connections to the origin", told, err, g.connections.Load())
	}
	_, _ = io.WriteString(conn, "hello")
	told = make([]byte, len("HTTP/1.1 200 OK"))
	if _, err := io.ReadFull(conn, told); err != nil || string(told) != "HTTP/1.1 200 OK" {
		t.Errorf("%q %v", told, err)
	}
}

// A gathered body can be sent again, whether its length was announced or not.
func TestGatheredBodiesAreSentAgain(t *testing.T) {
	overEachGathering(t, func(t *testing.T, g *gathering) {
		busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(busy.Close)
		c := g.client(t, "a.com")
		site, working := edgetest.Site(uint32(busy.Listener.Addr().(*net.TCPAddr).Port), "a.com"), g.site.Origins[0]
		working.Id, working.Backup = "second", true
		site.Origins = append(site.Origins, working)
		g.h.change(t, edgetest.Entry("site", "a", site))
		content := bytes.Repeat([]byte("again"), 13_000)
		for _, body := range []io.Reader{bytes.NewReader(content), struct{ io.Reader }{bytes.NewReader(content)}} {
			res, text := g.ask(t, c, http.MethodPut, "/", "a.com", body)
			if res.StatusCode != 200 || text != got(65_000, 65_000, content) {
				t.Errorf("%d %s", res.StatusCode, text)
			}
		}
	})
}
