package rules

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// Settings add up field by field; of two rules that say something of the same, the later one wins.
func TestOverridesAddUp(t *testing.T) {
	off, level := proto.Bool(false), configv1.ChallengeType_CHALLENGE_TYPE_POW
	s := newRules(t,
		ruletest.Platform(
			always(&configv1.ConfigAction{
				CacheBypass: on(), Gzip: on(), Brotli: off, Zstd: on(), Websocket: off, UnderAttack: on(), CcEnabled: off, CcMaxLevel: &level,
				RequestBodyLimit: proto.Uint64(5), OriginConnectTimeoutMs: proto.Uint32(100),
			}),
			ruletest.In(cache, always(&configv1.ConfigAction{Gzip: on(), RequestBodyLimit: proto.Uint64(7)}))),
		ruletest.Site(
			always(&configv1.ConfigAction{
				Gzip: off, Brotli: on(), RequestBodyLimit: proto.Uint64(0), OriginSendTimeoutMs: proto.Uint32(200), OriginReadTimeoutMs: proto.Uint32(3_600_000),
				LogSampleRate: proto.Uint32(0),
			}),
			when(ruletest.Eq("http.host", "b.com"), &configv1.ConfigAction{Zstd: off})))
	x, a := s.ask(t, "GET", "/")
	want := exchange.Overrides{
		CacheBypass: exchange.On, Gzip: exchange.On, Brotli: exchange.On, Zstd: exchange.On, WebSocket: exchange.Off, UnderAttack: exchange.On,
		CC: exchange.Off, CCMaxLevel: exchange.Pow, BodyLimit: 7, HasBodyLimit: true, ConnectTimeout: 100 * time.Millisecond, SendTimeout: 200 * time.Millisecond,
		ReadTimeout: time.Hour, HasLogSampleRate: true,
	}
	if a != nil || !reflect.DeepEqual(x.Overrides, want) {
		t.Errorf("%+v", x.Overrides)
	}
}

func TestOriginsAddUp(t *testing.T) {
	s := newRules(t,
		ruletest.Platform(always(&configv1.OriginAction{HostHeader: "b.com:81", Sni: "b.com", Port: 81})),
		ruletest.Site(always(&configv1.OriginAction{Group: "g", Port: 65_535}), when(ruletest.Eq("http.request.method", "POST"), &configv1.OriginAction{Group: "h"})))
	for method, group := range map[string]string{"GET": "g", "POST": "h"} {
		x, _ := s.ask(t, method, "/")
		if out := x.Out; out.Group != group || out.HostHeader != "b.com:81" || out.SNI != "b.com" || out.Port != 65_535 || out.Target != nil {
			t.Errorf("%s: %+v", method, out)
		}
	}
}

// All limits that a request falls under are counted at once; the one it is over refuses it.
func TestRateLimits(t *testing.T) {
	limit := func(key configv1.RateLimitKey, header string, window, status uint32) *configv1.RateLimitAction {
		return &configv1.RateLimitAction{Limit: 7, WindowSeconds: window, Key: key, Header: header, Status: status}
	}
	const address, host, ja4, header = configv1.RateLimitKey_RATE_LIMIT_KEY_ADDRESS, configv1.RateLimitKey_RATE_LIMIT_KEY_HOST,
		configv1.RateLimitKey_RATE_LIMIT_KEY_JA4, configv1.RateLimitKey_RATE_LIMIT_KEY_HEADER
	s := newRules(t,
		ruletest.Platform(always(limit(address, "", 60, 429))),
		ruletest.Site(
			always(limit(host, "", 10, 403)), when(ruletest.Eq("http.host", "b.com"), limit(address, "", 1, 429)), always(limit(header, "x-key", 5, 429)),
			always(limit(ja4, "", 3600, 429)), always(&configv1.OriginAction{Port: 1})))
	limits, counts := &fakeLimits{}, &fakeCounts{}
	s.rules.limits, s.rules.counts = limits, counts

	limits.over = func([]exchange.RateDue) int { return -1 }
	if x, a := s.ask(t, "GET", "/", with("X-Key", "k")); a != nil || x.Out.Port != 1 {
		t.Errorf("within its limits: %+v", a)
	}
	due := limits.asked[0]
	if len(due) != 4 || due[0].Rule.Window != time.Minute || due[1].Rule.Window != 10*time.Second || due[0].Rule.Limit != 7 {
		t.Fatalf("%+v", due)
	}
	keys := []uint64{
		due[0].Rule.DueOfAddress(netip.MustParseAddr("192.0.2.1")).Key, due[0].Rule.DueOfText("a.com").Key, due[0].Rule.DueOfText("k").Key, due[0].Rule.DueOfText("").Key,
	}
	for i := range due {
		if due[i].Key != keys[i] {
			t.Errorf("limit %d counts for another key", i)
		}
	}
	client, _ := s.asked("GET", "/", with("X-Key", "k"))
	client.In.Handshake = &exchange.Handshake{JA4: "q13d0310h3_55b375c5d22e_cd85d2d88918"}
	if s.stage(client); limits.asked[1][3].Key != due[0].Rule.DueOfText(client.In.Handshake.JA4).Key {
		t.Error("a client with a fingerprint does not count by it")
	}
	limits.asked = limits.asked[:1]
	counts.noted = nil
	limits.over = func([]exchange.RateDue) int { return 1 }
	x, a := s.ask(t, "GET", "/")
	if a == nil || a.Status != 403 || a.Code != "policy-denied" || a.Header.Get("Retry-After") != "10" || x.Out.Port != 0 {
		t.Errorf("over a limit: %+v", a)
	}
	if len(counts.noted) != 1 || counts.noted[0] != "s1 limited" {
		t.Errorf("%q", counts.noted)
	}
	s.rules.limits = nil
	if _, a := s.ask(t, "GET", "/"); a == nil || a.Code != "policy-unavailable" {
		t.Errorf("nobody counts: %+v", a)
	}
}
