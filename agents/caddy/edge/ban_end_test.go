package edge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// A ban ends what is under way and nothing else, over every protocol: exchanges are ended while they write, read and
// wait, and where several share a connection each by itself.
func TestBanEndsWhatIsUnderWay(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		for _, site := range []string{"", "a"} {
			t.Run(fmt.Sprintf("HTTP %d, site %q", protocol, site), func(t *testing.T) {
				e := serveBanned(t, protocol)
				const banned, other = "203.0.113.7", "203.0.113.8"
				// On HTTP/2 and 3 all share one connection, on HTTP/1 each takes one that was in use before.
				ending := map[string]*underWay{}
				for _, kind := range []string{"download", "unread", "upload", "events", "wait"} {
					ending[kind] = e.start(t, kind, "a.com", banned)
				}
				going := map[string]*underWay{"another client": e.start(t, "events", "a.com", other)}
				if site != "" {
					going["another site"] = e.start(t, "events", "b.com", banned)
				}
				if got := e.underWay.Load(); got != int64(len(ending)+len(going)) {
					t.Fatalf("%d exchanges are under way", got)
				}
				e.h.ban(t, site, banned+"/32")
				for kind, x := range ending {
					if kind == "unread" {
						continue
					}
					select {
					case <-x.ended:
					case <-time.After(20 * time.Second):
						t.Errorf("%s goes on", kind)
					}
				}
				e.until(t, "only the others are under way", func() bool { return e.underWay.Load() == int64(len(going)) })
				for name, x := range going {
					x.next <- struct{}{}
					select {
					case <-x.events:
					case <-x.ended:
						t.Errorf("the exchange of %s ended", name)
					case <-time.After(20 * time.Second):
						t.Errorf("the exchange of %s stands still", name)
					}
				}
			})
		}
	}
}

// bannedEdge is an edge before an origin whose exchanges last.
type bannedEdge struct {
	h        *edge
	url      string
	protocol int
	underWay atomic.Int64
	shared   *http.Client
	// Tells the origin's event streams to go on, by number.
	streams [16]chan struct{}
	reached chan string
	turn    int
}

type underWay struct {
	ended, events, next chan struct{}
}

func (e *bannedEdge) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s; %d are", what, e.underWay.Load())
		}
	}
}

func serveBanned(t *testing.T, protocol int) *bannedEdge {
	e := &bannedEdge{protocol: protocol, reached: make(chan string, 100)}
	for i := range e.streams {
		e.streams[i] = make(chan struct{}, 1)
	}
	origin := httptest.NewServer(http.HandlerFunc(e.origin))
	t.Cleanup(origin.Close)
	u, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	e.h = newHandler(t,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("client-ip", "", &configv1.ClientIp{
			Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-client", TrustedCidrs: []string{"127.0.0.0/8"},
		}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(port), "a.com")),
		edgetest.Entry("site", "b", edgetest.Site(uint32(port), "b.com")),
		streamsBodies())
	served := serveProtocol(t, e.h, protocol, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.underWay.Add(1)
			defer e.underWay.Add(-1)
			next.ServeHTTP(w, r)
		})
	})
	e.url = served.url
	if protocol > 1 {
		e.shared = served.client(t, "")
	}
	return e
}

// origin answers without an end, and reads without one.
func (e *bannedEdge) origin(w http.ResponseWriter, r *http.Request) {
	kind := strings.TrimPrefix(r.URL.Path, "/")
	if kind == "" {
		return
	}
	part := make([]byte, 256<<10)
	e.reached <- kind
	switch kind {
	case "download", "unread":
		for {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	case "upload":
		_, _ = io.Copy(io.Discard, r.Body)
	case "wait":
		<-r.Context().Done()
	case "events":
		number, _ := strconv.Atoi(r.URL.RawQuery)
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			fmt.Fprint(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-e.streams[number]:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// start begins an exchange and returns when it is under way.
func (e *bannedEdge) start(t *testing.T, kind, host, client string) *underWay {
	t.Helper()
	by := e.shared
	if by == nil {
		transport := &http.Transport{}
		by = &http.Client{Transport: transport}
		t.Cleanup(transport.CloseIdleConnections)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ask := func(path string, body io.Reader) (*http.Response, error) {
		method := http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(ctx, method, e.url+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("X-Client", client)
		return by.Do(r)
	}
	first, err := ask("/", nil)
	if err != nil || first.StatusCode != http.StatusOK || first.ProtoMajor != e.protocol {
		t.Fatalf("%v %v", first, err)
	}
	_, _ = io.Copy(io.Discard, first.Body)
	first.Body.Close()

	number := e.turn
	e.turn++
	x := &underWay{ended: make(chan struct{}), events: make(chan struct{}, 1), next: e.streams[number]}
	var body io.Reader
	if kind == "upload" {
		sending, sent := io.Pipe()
		body = sending
		go func() {
			for {
				// A client that is slow.
				if _, err := sent.Write([]byte("part")); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	begun := make(chan struct{})
	go func() {
		defer close(x.ended)
		response, err := ask("/"+kind+"?"+strconv.Itoa(number), body)
		if err != nil {
			return
		}
		defer response.Body.Close()
		reader := bufio.NewReader(response.Body)
		if _, err := reader.ReadByte(); err != nil {
			return
		}
		close(begun)
		switch kind {
		case "unread":
			// Who does not read sees nothing end; the edge has to.
			<-ctx.Done()
		case "events":
			_, _ = reader.ReadString('x')
			for {
				if _, err := reader.ReadString('x'); err != nil {
					return
				}
				x.events <- struct{}{}
			}
		default:
			_, _ = io.Copy(io.Discard, reader)
		}
	}()
	if got := <-e.reached; got != kind {
		t.Fatalf("the origin got %q", got)
	}
	if kind != "upload" && kind != "wait" {
		<-begun
	}
	return x
}
