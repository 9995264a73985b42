package challenge

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

// node is Challenges of one node with a clock of its own, and a visitor of site-1 with its cookies.
type node struct {
	*Challenges
	t       testing.TB
	clock   time.Time
	visit   Visit
	headers http.Header
}

func newNode(t testing.TB) *node {
	n := &node{t: t, clock: time.Unix(vectorTime, 0)}
	n.Challenges = New(Options{Now: func() time.Time { return n.clock }})
	n.visit = Visit{SiteID: "site-1", Client: vectorClient, RequestID: "request-1", PassTTL: 30 * time.Minute, PowBits: 8, PowHighBits: 9}
	n.headers = http.Header{"User-Agent": {vectorAgent}}
	n.setKeys(1, "k1")
	return n
}

// setKeys makes the first id the current key, the second next, the third previous. A key's secret follows from its id.
func (n *node) setKeys(version uint64, ids ...string) {
	n.t.Helper()
	keys := Keys{Version: version}
	for i, id := range ids {
		key := &Key{ID: id, Secret: secretFrom(id[len(id)-1] - '1')}
		*[]**Key{&keys.Current, &keys.Next, &keys.Previous}[i] = key
	}
	if err := n.SetKeys(keys); err != nil {
		n.t.Fatal(err)
	}
}

// admit sends a request and reports whether it was let through; w is the answer when not.
func (n *node) admit(method, target string, demand Demand) (w *httptest.ResponseRecorder, admitted bool) {
	r := httptest.NewRequest(method, target, nil)
	r.RequestURI = target
	r.Header = n.headers.Clone()
	return n.admitRequest(r, demand)
}

func (n *node) admitRequest(r *http.Request, demand Demand) (w *httptest.ResponseRecorder, admitted bool) {
	w = httptest.NewRecorder()
	x := exchangetest.New(w, r)
	if a := n.Admit(x, &n.visit, demand); a != nil {
		x.Send(a)
		return w, false
	}
	return w, true
}

// verify answers a request as the edge does.
func (n *node) verify(w http.ResponseWriter, r *http.Request) {
	exchangetest.Serve(w, r, func(x *exchange.Exchange) *exchange.Answer { return n.Verify(x, &n.visit) })
}

// passes reports whether the visitor has a pass of a level.
func (n *node) passes(level Level) bool {
	_, admitted := n.admit("GET", "/", Demand{Level: level})
	return admitted
}

// post sends a form.
func (n *node) post(form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", VerifyPath, strings.NewReader(form.Encode()))
	r.Header = n.headers.Clone()
	w := httptest.NewRecorder()
	n.verify(w, r)
	return w
}

// keep takes the cookies of an answer, as a browser does; it reports whether there were any.
func (n *node) keep(w *httptest.ResponseRecorder) bool {
	cookies := w.Result().Cookies()
	if len(cookies) == 0 {
		return false
	}
	pairs := make([]string, len(cookies))
	for i, cookie := range cookies {
		pairs[i] = cookie.Name + "=" + cookie.Value
	}
	n.headers["Cookie"] = []string{strings.Join(pairs, "; ")}
	return true
}

var dataToken, fieldToken = regexp.MustCompile(`data-t="([^"]*)"`), regexp.MustCompile(`name="t" value="([^"]*)"`)

// tokenOf is the token on a page.
func tokenOf(t testing.TB, page string) string {
	t.Helper()
	for _, at := range []*regexp.Regexp{dataToken, fieldToken} {
		if found := at.FindStringSubmatch(page); found != nil {
			return html.UnescapeString(found[1])
		}
	}
	t.Fatalf("no token in %q", page)
	return ""
}

// challenge gets a page of a demand and returns its token.
func (n *node) challenge(demand Demand) string {
	n.t.Helper()
	w, admitted := n.admit("GET", "/back?x=1", demand)
	if admitted || w.Code != http.StatusForbidden {
		n.t.Fatalf("no challenge: %v %d", admitted, w.Code)
	}
	return tokenOf(n.t, w.Body.String())
}

// solve finds the right answer; for a captcha it tries the images of the pool.
func (n *node) solve(text string) string {
	n.t.Helper()
	b := bind(n.visit.SiteID, n.visit.Client, n.headers.Get("User-Agent"))
	t, key := checkToken(n.keys.Load(), &b, text, n.clock.Unix())
	if key == nil {
		n.t.Fatalf("token %q is not good", text)
	}
	switch t.kind {
	case typeJS:
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	case typePow:
		for i := 0; ; i++ {
			if answer := strconv.Itoa(i); isWork(text, answer, int(t.bits)) {
				return answer
			}
		}
	}
	for i := range n.captchas.slots {
		if image := n.captchas.slots[i].Load(); image != nil && t.solves(key, text, image.answer) {
			return image.answer
		}
	}
	n.t.Fatal("no image has this answer")
	return ""
}

func mustAddr(text string) netip.Addr { return netip.MustParseAddr(text) }
