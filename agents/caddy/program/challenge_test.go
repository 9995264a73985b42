package program_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

func TestChallengesAtTheRealEdge(t *testing.T) {
	port := live.StartOrigin(t)
	e := live.Start(t, nil, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{
			live.OriginPolicy(), live.HeaderMode(),
			edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test")),
			edgetest.Entry("site", "site-b", edgetest.Site(port, "b.test")),
			edgetest.Entry("protection", "site-b", &configv1.SiteProtection{UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_COOKIE302}),
			edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{}),
		}),
	}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*live.Wait)
	defer cancel()
	// The target of a page is read back from the redirect, so it must not be followed.
	noRedirect := func(method, host, target, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+e.Addr+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}

	e.Expect("GET", "b.test", "/", 503, "challenge-unavailable")
	e.SetKeys()

	response := noRedirect("GET", "b.test", "//x/y?z", "")
	if response.StatusCode != 302 || response.Header.Get("Location") != "/.//x/y?z" || response.Header.Get("X-Svc-Challenge") != "cookie302" || len(response.Cookies()) != 2 {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	if _, body := e.Expect("GET", "b.test", "/x", 200, "", "Cookie", response.Cookies()[0].String()); !strings.Contains(body, "Target: /x\n") {
		t.Errorf("%s", body)
	}

	// One entry challenges every site at once.
	e.Expect("GET", "a.test", "/", 200, "")
	if _, err := e.Client.ApplyConfig(ctx, connect.NewRequest(&edgev1.ApplyConfigRequest{
		Base: edgetest.Position(1), Target: edgetest.Position(2),
		Upserts: []*configv1.Entry{edgetest.Entry("platform-protection", "", &configv1.PlatformProtection{
			UnderAttack: true, UnderAttackChallenge: configv1.ChallengeType_CHALLENGE_TYPE_JS,
		})},
	})); err != nil {
		t.Fatal(err)
	}
	page, body := e.Get("GET", "a.test", "/x?y")
	if page.StatusCode != 403 || page.Header.Get("X-Svc-Challenge") != "js" || page.Header.Get("Server") != "" {
		t.Fatalf("%d %v", page.StatusCode, page.Header)
	}
	token := regexp.MustCompile(`data-t="([^"]*)"`).FindStringSubmatch(body)[1]
	sum := sha256.Sum256([]byte(token))
	form := url.Values{"t": {token}, "a": {hex.EncodeToString(sum[:])}, "r": {"/x?y"}}.Encode()
	// The test's client has the User-Agent of Go everywhere.
	verified := noRedirect("POST", "a.test", "/.svc/challenge/verify", form, "Content-Type", "application/x-www-form-urlencoded")
	if verified.StatusCode != 303 || verified.Header.Get("Location") != "/x?y" || len(verified.Cookies()) != 2 {
		t.Fatalf("%d %v", verified.StatusCode, verified.Header)
	}
	e.Expect("GET", "a.test", "/x?y", 200, "", "Cookie", verified.Cookies()[0].String())
	// Nobody else has use for it.
	e.Expect("GET", "a.test", "/x?y", 403, "", "Cookie", verified.Cookies()[0].String(), "X-Demo-Client-Ip", "198.51.100.1")
	if again := noRedirect("POST", "a.test", "/.svc/challenge/verify", form); again.StatusCode != 303 || len(again.Cookies()) != 0 {
		t.Errorf("a second time: %d %v", again.StatusCode, again.Header)
	}
	for method, want := range map[string]string{"HEAD": "js", "POST": "required", "OPTIONS": "required"} {
		if response, _ := e.Expect(method, "a.test", "/", 403, ""); response.Header.Get("X-Svc-Challenge") != want {
			t.Errorf("%s: %v", method, response.Header)
		}
	}
	// A slow or cut body holds nothing up and passes nobody.
	answer := e.Raw("POST /.svc/challenge/verify HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !strings.Contains(answer, "X-Svc-Error: too-large\r\n") {
		t.Errorf("%s", answer)
	}
	status := e.Status()
	if n := status.GetChallenges(); status.GetChallengeKeysVersion() != 2 || n.GetServed()[0] != 1 ||
		n.GetPassed()[1] != 1 || n.GetReplayed() != 1 || n.GetFromElsewhere() != 0 {
		t.Errorf("%v", status)
	}
}
