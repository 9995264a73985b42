package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// slowReaders is an edge over one protocol, before an origin of the test that says how many responses it is writing.
type slowReaders struct {
	*protocolEdge
	h       *edge
	writing atomic.Int64
}

func overEachSlowReaders(t *testing.T, origin http.HandlerFunc, check func(t *testing.T, s *slowReaders)) {
	for _, protocol := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("HTTP %d", protocol), func(t *testing.T) {
			s := new(slowReaders)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.writing.Add(1)
				defer s.writing.Add(-1)
				origin(w, r)
			}))
			server.Config.ConnContext = smallBuffers
			server.Start()
			t.Cleanup(server.Close)
			s.h = newHandler(t, edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
				edgetest.Entry("site", "a", edgetest.Site(uint32(server.Listener.Addr().(*net.TCPAddr).Port), "a.com")))
			s.protocolEdge = serveProtocol(t, s.h, protocol, func(next http.Handler) http.Handler { return next })
			check(t, s)
		})
	}
}

func (s *slowReaders) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// get asks for the headers of a response and reads nothing of its body.
func (s *slowReaders) get(t *testing.T, path string) *bufio.Reader {
	t.Helper()
	c := s.client(t, "a.com")
	if transport, ok := c.Transport.(*http.Transport); ok {
		transport.DialContext = dialSmall
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "a.com"
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return bufio.NewReaderSize(res.Body, 1<<10)
}

// A client that does not read its response holds no origin.
func TestSlowReadersFreeTheOrigin(t *testing.T) {
	const size = 1 << 20
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i >> 5)
	}
	overEachSlowReaders(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		_, _ = w.Write(content)
	}, func(t *testing.T, s *slowReaders) {
		for _, path := range []string{"/length", "/chunked"} {
			var unread []*bufio.Reader
			for range 3 {
				unread = append(unread, s.get(t, path))
			}
			s.until(t, "the origin wrote all responses", func() bool { return s.writing.Load() == 0 })
			for _, r := range unread {
				if all, err := io.ReadAll(r); err != nil || string(all) != string(content) {
					t.Errorf("%s: %d bytes, %v", path, len(all), err)
				}
			}
		}
	})
}

// A client that leaves without reading ends the reading of its response, however long that is.
func TestSlowReadersThatLeaveEndTheirResponses(t *testing.T) {
	overEachSlowReaders(t, func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}, func(t *testing.T, s *slowReaders) {
		t.Run("clients", func(t *testing.T) {
			for range 3 {
				s.get(t, "/")
			}
			s.until(t, "responses are written", func() bool { return s.writing.Load() == 3 })
			// Most go over to the other goroutine meanwhile; those that do not must end as well.
			time.Sleep(100 * time.Millisecond)
		})
		s.until(t, "nothing is written", func() bool { return s.writing.Load() == 0 })
	})
}

// Events reach a client one by one, also after it was slow for a while.
func TestEventsAreNotDelayedBySlowReaders(t *testing.T) {
	const burst = 1 << 20
	next := make(chan struct{})
	overEachSlowReaders(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			if i == 5 {
				_, _ = w.Write(make([]byte, burst))
			}
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	}, func(t *testing.T, s *slowReaders) {
		events := s.get(t, "/")
		for i := range 20 {
			if i == 5 {
				time.Sleep(100 * time.Millisecond)
				if n, err := io.CopyN(io.Discard, events, burst); err != nil {
					t.Fatal(n, err)
				}
			}
			if line, err := events.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%d: %q %v", i, line, err)
			}
			next <- struct{}{}
		}
	})
}
