package purgemethod

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/rate"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/internal/exchangetest"
)

const key = "a key of the site"

var secret = []byte("0123456789abcdef0123456789abcdef")

func digestOf(siteID, key string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte(siteID + "\n" + key))
	return h.Sum(nil)
}

type node struct {
	t     *testing.T
	core  *core.Core
	stage exchange.Stage
	now   time.Time
}

// newNode has one site that takes PURGE requests.
func newNode(t *testing.T) *node {
	n := &node{t: t, now: time.Unix(1_800_000_000, 0)}
	n.core = core.New(core.Options{StateDir: t.TempDir(), Now: func() time.Time { return n.now }})
	rate.Of(n.core)
	edgetest.Change(t, n.core, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")),
		edgetest.Entry(kind, "a", &configv1.SitePurgeMethod{KeyDigest: digestOf("a", key)}),
	})
	n.stage = Stage(n.core)
	return n
}

func (n *node) giveSecret() {
	n.t.Helper()
	if _, err := setSecret(context.Background(), n.core, &edgev1.SetPurgeSecretRequest{Secret: &nodev1.PurgeSecret{Version: 1, Secret: secret}}); err != nil {
		n.t.Fatal(err)
	}
}

// agent answers each purge with what it is given, until the test ends.
func (n *node) agent(answer func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = watchRequests(ctx, n.core, nil, func(r *edgev1.PurgeRequest) error {
			go func() {
				if a := answer(r.GetPurge()); a != nil {
					_, _ = answerRequest(ctx, n.core, &edgev1.AnswerPurgeRequestRequest{Id: r.GetId(), Answer: a})
				}
			}()
			return nil
		})
	}()
	d := component.Of(n.core).desk
	for {
		d.mu.Lock()
		taken := d.taken != nil
		d.mu.Unlock()
		if taken {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop = func() { cancel(); <-over }
	n.t.Cleanup(stop)
	return stop
}

type asked struct {
	method, host, target, client string
	keys                         []string
}

// ask returns nil where the request goes on to the origin.
func (n *node) ask(a asked) *exchange.Answer {
	r := httptest.NewRequest(a.method, a.target, nil)
	r.Host, r.Header[keyHeader], r.RemoteAddr = a.host, a.keys, a.client+":1234"
	x := exchangetest.New(httptest.NewRecorder(), r)
	x.In.Host, x.Tables = a.host, n.core.Tables()
	x.Plan = core.PlanOfHost(x.Tables, a.host)
	return n.stage(x)
}

func TestPurgeRequests(t *testing.T) {
	accepted := func(r *nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse {
		return &nodev1.SubmitPurgeResponse{TaskId: r.GetSiteId() + " " + r.GetUrl()}
	}
	refused := func(code string, seconds uint32) func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse {
		return func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse {
			return &nodev1.SubmitPurgeResponse{Refusal: code, RetryAfterSeconds: seconds}
		}
	}
	good := asked{"PURGE", "a.com", "/x%20y?q=1", "192.0.2.1", []string{key}}
	with := func(change func(*asked)) asked {
		a := good
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		asked      asked
		agent      func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse
		noSecret   bool
		status     int
		code, task string
		retryAfter string
	}{
		"the right key":                        {asked: good, agent: accepted, status: 202, task: "a http://a.com/x%20y?q=1"},
		"another method":                       {asked: with(func(a *asked) { a.method = "GET" }), agent: accepted},
		"another case of the method":           {asked: with(func(a *asked) { a.method = "purge" }), agent: accepted},
		"a site that does not take it":         {asked: with(func(a *asked) { a.host = "b.com" }), agent: accepted},
		"another key":                          {asked: with(func(a *asked) { a.keys = []string{key + "x"} }), agent: accepted, status: 403, code: "purge-key-invalid"},
		"no key":                               {asked: with(func(a *asked) { a.keys = nil }), agent: accepted, status: 403, code: "purge-key-invalid"},
		"an empty key":                         {asked: with(func(a *asked) { a.keys = []string{""} }), agent: accepted, status: 403, code: "purge-key-invalid"},
		"two keys":                             {asked: with(func(a *asked) { a.keys = []string{key, key} }), agent: accepted, status: 403, code: "purge-key-invalid"},
		"a long key":                           {asked: with(func(a *asked) { a.keys = []string{strings.Repeat("k", 257)} }), agent: accepted, status: 403, code: "purge-key-invalid"},
		"a long URL":                           {asked: with(func(a *asked) { a.target = "/" + strings.Repeat("x", 2048) }), agent: accepted, status: 400, code: "purge-url-invalid"},
		"a URL that the console does not take": {asked: good, agent: refused("purge-url-invalid", 0), status: 400, code: "purge-url-invalid"},
		"too many for the console":             {asked: good, agent: refused("purge-rate-limited", 7), status: 429, code: "purge-rate-limited", retryAfter: "7"},
		"no console":                           {asked: good, agent: refused("purge-unavailable", 0), status: 503, code: "purge-unavailable"},
		"a word that is not known":             {asked: good, agent: refused("other", 0), status: 503, code: "purge-unavailable"},
		"no agent":                             {asked: good, status: 503, code: "purge-unavailable"},
		"no secret":                            {asked: good, agent: accepted, noSecret: true, status: 503, code: "purge-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			if !c.noSecret {
				n.giveSecret()
			}
			if c.agent != nil {
				n.agent(c.agent)
			}
			a := n.ask(c.asked)
			if c.status == 0 {
				if a != nil {
					t.Errorf("%d %s", a.Status, a.Bytes)
				}
				return
			}
			var body struct{ Code, TaskID string }
			text := strings.Replace(string(a.Bytes), "task_id", "TaskID", 1)
			if err := json.Unmarshal([]byte(text), &body); err != nil || body.Code != c.code || body.TaskID != c.task {
				t.Errorf("%s %v", a.Bytes, err)
			}
			h := a.Header
			if a.Status != c.status || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Retry-After") != c.retryAfter || h.Get("X-Svc-Error") != c.code || a.Code != c.code {
				t.Errorf("%d %v", a.Status, h)
			}
			if strings.Contains(fmt.Sprint(h, string(a.Bytes)), key) {
				t.Error("the key is in the response")
			}
		})
	}
}

func TestRatesOfPurgeRequests(t *testing.T) {
	n := newNode(t)
	n.giveSecret()
	n.agent(func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse {
		return &nodev1.SubmitPurgeResponse{TaskId: "1"}
	})
	times := func(client, key string) map[int]int {
		statuses := map[int]int{}
		for range 25 {
			statuses[n.ask(asked{"PURGE", "a.com", "/", client, []string{key}}).Status]++
		}
		return statuses
	}
	want := func(what string, got, want map[int]int) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	want("wrong keys", times("192.0.2.1", "wrong"), map[int]int{403: 20, 429: 5})
	want("what a network guesses takes nothing from others", times("192.0.2.2", key), map[int]int{202: 20, 429: 5})
	want("a site has one rate", times("192.0.2.3", key), map[int]int{429: 25})
	n.now = n.now.Add(2 * time.Second)
	want("the next second", times("192.0.2.3", key), map[int]int{202: 20, 429: 5})
}

func TestNobodyWaitsForAnAgentThatIsGone(t *testing.T) {
	n := newNode(t)
	n.giveSecret()
	asking := make(chan struct{}, maxWaiting)
	ask := func() chan int {
		status := make(chan int, 1)
		go func() {
			status <- n.ask(asked{"PURGE", "a.com", "/", "192.0.2.1", []string{key}}).Status
		}()
		return status
	}
	silent := func(*nodev1.SubmitPurgeRequest) *nodev1.SubmitPurgeResponse {
		asking <- struct{}{}
		return nil
	}
	stop := n.agent(silent)
	waits := ask()
	<-asking
	stop()
	if status := <-waits; status != 503 {
		t.Errorf("after the agent left: %d", status)
	}
	n.agent(silent)
	waits = ask()
	<-asking
	n.agent(silent)
	if status := <-waits; status != 503 {
		t.Errorf("after another agent came: %d", status)
	}
	d := component.Of(n.core).desk
	d.wait = time.Millisecond
	if status := <-ask(); status != 503 {
		t.Errorf("after the longest wait: %d", status)
	}
	for range maxWaiting {
		d.mu.Lock()
		d.last++
		d.waiting[d.last] = make(chan *nodev1.SubmitPurgeResponse, 1)
		d.mu.Unlock()
	}
	d.wait = time.Hour
	if status := <-ask(); status != 503 {
		t.Errorf("with too many that wait: %d", status)
	}
	d.answer(1_000_000, nil)
}

func TestSecretsThatAreNone(t *testing.T) {
	n := newNode(t)
	for name, s := range map[string]*nodev1.PurgeSecret{
		"none": nil, "no version": {Secret: secret}, "short": {Version: 1, Secret: secret[:15]}, "long": {Version: 1, Secret: make([]byte, 257)},
	} {
		if _, err := setSecret(context.Background(), n.core, &edgev1.SetPurgeSecretRequest{Secret: s}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	n.giveSecret()
	status := &edgev1.GetStatusResponse{}
	component.Of(n.core).FillStatus(status)
	if status.PurgeSecretVersion != 1 {
		t.Errorf("%v", status)
	}
	if failed := edgetest.Change(t, n.core, []*configv1.Entry{edgetest.Entry(kind, "a", &configv1.SitePurgeMethod{KeyDigest: []byte("short")})}); len(failed) != 1 {
		t.Errorf("%v", failed)
	}
}
