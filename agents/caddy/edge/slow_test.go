package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

// bounded is a response writer that notes until when the body may be read.
type bounded struct {
	*httptest.ResponseRecorder
	until time.Time
	// The last limit was taken off: the body came whole.
	whole bool
}

func (b *bounded) SetReadDeadline(until time.Time) error {
	if b.whole = until.IsZero(); !b.whole {
		b.until = until
	}
	return nil
}

// Whatever the edge answers by itself, a client that keeps its body back holds nothing up for long.
func TestWhatTheEdgeAnswersDoesNotWaitForBodies(t *testing.T) {
	disabled := edgetest.Site(0, "disabled.com")
	disabled.Disabled = true
	small := edgetest.Site(0, "small.com")
	small.RequestBodyLimit = 5
	small.Pool.Websocket = false
	h := newProtected(t, edgetest.Entry("site", "s", small), edgetest.Entry("site", "d", disabled),
		edgetest.Entry("site", "c", edgetest.Site(0, "challenged.com")),
		edgetest.Entry("protection", "c", &configv1.SiteProtection{
			UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_JS, PowDifficulty: 8, PowHighDifficulty: 9,
		}),
		edgetest.Entry("ip-list", "b", &configv1.IpList{ListKind: configv1.IpListKind_IP_LIST_KIND_BLOCK, EntryCount: 1}),
		edgetest.Entry("ip-list-chunk", "b/0", &configv1.IpListChunk{ListId: "b", Cidrs: []string{"192.0.2.77/32"}}))
	h.ban(t, "", "192.0.2.66/32")
	for name, c := range map[string]struct {
		method, host, target, from string
		status                     int
	}{
		"a method that is refused":      {"TRACE", "a.com", "/", "", 405},
		"an unknown host":               {"POST", "b.com", "/", "", 404},
		"a disabled site":               {"POST", "disabled.com", "/", "", 503},
		"a banned client":               {"POST", "a.com", "/", "192.0.2.66:1", 403},
		"a blocked client":              {"POST", "a.com", "/", "192.0.2.77:1", 403},
		"a path under the prefix":       {"POST", "a.com", "/.svc/x", "", 404},
		"the worker of the challenge":   {"GET", "a.com", "/.svc/challenge/worker.js", "", 200},
		"a challenge":                   {"GET", "challenged.com", "/", "", 403},
		"an upload without a pass":      {"POST", "challenged.com", "/", "", 403},
		"an upload that is too large":   {"POST", "small.com", "/", "", 413},
		"an upload without an origin":   {"POST", "a.com", "/small", "", 502},
		"an answer that is no form":     {"POST", "a.com", "/.svc/challenge/verify", "", 303},
		"a download of an empty upload": {"GET", "a.com", "/small", "", 502},
	} {
		r := request(c.method, c.host, c.target)
		r.ContentLength = 1 << 20
		if c.target == "/small" {
			r.ContentLength = 3
		}
		if c.status == 303 {
			r.ContentLength = -1
		}
		if c.from != "" {
			r.RemoteAddr = c.from
		}
		r.Body = io.NopCloser(strings.NewReader("abc"))
		w := &bounded{ResponseRecorder: httptest.NewRecorder()}
		begun := time.Now()
		_ = h.ServeHTTP(w, r, nil)
		if w.Code != c.status {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if !w.whole && (w.until.Before(begun) || w.until.After(time.Now().Add(10*time.Second))) {
			t.Errorf("%s: bounded until %v", name, w.until)
		}
	}
	// Without a body there is nothing to wait for.
	w := &bounded{ResponseRecorder: httptest.NewRecorder()}
	_ = h.ServeHTTP(w, request(http.MethodGet, "b.com", "/"), nil)
	if !w.until.IsZero() {
		t.Errorf("without a body: %v", w.until)
	}
}
