package edge

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/ruletest"
)

// startPaths is a site that blocks /admin before an origin that answers with the target that it got.
func startPaths(t *testing.T, normalize bool) *edge {
	t.Helper()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	t.Cleanup(origin.Close)
	entries := []*configv1.Entry{
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(uint32(origin.Listener.Addr().(*net.TCPAddr).Port), "a.com")),
		siteRules(ruletest.When(ruletest.Call("starts_with", ruletest.Field("http.request.uri.path"), ruletest.Literal("/admin")), &configv1.BlockAction{Status: 403})),
	}
	if normalize {
		entries = append(entries, edgetest.Entry("site-requests", "a", &configv1.SiteRequests{PathNormalization: true}))
	}
	return newHandler(t, entries...)
}

const blockedPath, ambiguousPath = "403 policy-denied", "400 path-ambiguous"

// What rules see of a path is what the origin gets of it.
var pathsAsked = []struct{ target, want string }{
	{"/admin/x/../../public", "/public"}, {"/x/../admin", blockedPath}, {"/x/%2e%2E/%61dmin", blockedPath}, {"/x/..//admin", blockedPath},
	{`/x\..\admin`, ambiguousPath}, {"/x%5c..%5cadmin", ambiguousPath}, {"/x/..;/admin", ambiguousPath}, {"/admin/x%2f..%2f..%2fpublic", ambiguousPath},
	{"/x%2f%2e%2e/admin", ambiguousPath}, {"/a%2Fb", "/a%2Fb"}, {"//a//b", "//a//b"}, {"//admin", blockedPath}, {"//..//", "//"},
	{"/a/./b/..", "/a/"}, {"/a;x/../b", "/b"}, {"/%7Ea%20b/%E4%B8%AD", "/~a%20b/%E4%B8%AD"}, {"/%252e%252e/a", "/%252e%252e/a"},
	{"/a/../b?c=/../%61&d=%2f..", "/b?c=/../%61&d=%2f.."}, {"/a?", "/a?"},
}

func TestRulesAndOriginSeeTheSamePath(t *testing.T) {
	for _, protocol := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("HTTP %d", protocol), func(t *testing.T) {
			h := startPaths(t, true)
			e := serveProtocol(t, h, protocol, func(next http.Handler) http.Handler { return next })
			client := e.client(t, "a.com")
			for _, c := range pathsAsked {
				response, got := e.ask(t, client, "GET", c.target, "a.com", nil)
				if response.StatusCode != 200 {
					got = told(response)
				}
				if got != c.want {
					t.Errorf("%s: %s, not %s", c.target, got, c.want)
				}
			}
		})
	}
}

func TestPathsStayAsTheyCameWithoutNormalization(t *testing.T) {
	h := startPaths(t, false)
	for _, target := range []string{"/admin/x/../../public", "/a/./b", "/%61", "/x/..;/b", "/x%2f..%2fb", `/x\b`} {
		if w, _ := h.send(rawRequest(t, "GET "+target)); w.Code != 200 || w.Body.String() != target {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

// Lines that no client of net/http sends.
func TestOddTargetsAreNormalized(t *testing.T) {
	h := startPaths(t, true)
	for line, want := range map[string]string{
		`GET /x\..\admin`: ambiguousPath, "GET http://a.com/x/../admin": blockedPath, "GET http://a.com/admin/../b?c": "/b?c",
		"GET http://a.com": "/", "GET *": "400 bad-request", "OPTIONS *": "405 method-not-allowed", "GET /\xe4\xb8\xad/../b": "/b",
		"GET /.svc/../b": "/b", "GET /x/../.svc/b": "404 not-found",
	} {
		w, _ := h.send(rawRequest(t, line))
		got := w.Body.String()
		if w.Code != 200 {
			got = fmt.Sprint(w.Code, " ", w.Header().Get("X-Svc-Error"))
		}
		if got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
}

// Bans come before the path, and clients that send ambiguous paths are counted.
func TestAmbiguousPathsAreCounted(t *testing.T) {
	h := startPaths(t, true)
	h.change(t, oneASecond("a"))
	got := h.codes(7, func(_ int, r *http.Request) { *r = *rawRequest(t, "GET /x/..;/admin") })
	if want := strings.Repeat("path-ambiguous ", 5) + "ip-banned ip-banned"; got != want {
		t.Error(got)
	}
}

func rawRequest(t *testing.T, line string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: a.com\r\n\r\n")))
	if err != nil {
		t.Fatal(line, err)
	}
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}
