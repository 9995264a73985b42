package waf

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func excluding(part configv1.WafPart, name string, by *configv1.WafExclusion) *configv1.WafExclusion {
	by.Part, by.Name = part, name
	return by
}

func ofRule(id uint32) *configv1.WafExclusion {
	return &configv1.WafExclusion{Rules: &configv1.WafExclusion_Rule{Rule: id}}
}

func ofTag(tag string) *configv1.WafExclusion {
	return &configv1.WafExclusion{Rules: &configv1.WafExclusion_Tag{Tag: tag}}
}

// kindsOfSettings are what sites have beside paranoia and threshold. The rule 920274 is the one that leaves out most fields
// of a header by itself, 942421 most cookies.
var kindsOfSettings = []func(*configv1.SiteWaf){
	asIs,
	func(m *configv1.SiteWaf) { m.Mode = configv1.WafMode_WAF_MODE_DETECT },
	func(m *configv1.SiteWaf) { m.ExcludedFamilies = []uint32{942} },
	func(m *configv1.SiteWaf) { m.ExcludedRules = []uint32{941100, 942100} },
	func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{excluding(configv1.WafPart_WAF_PART_HEADER, "X-Note", ofRule(920274))}
	},
	func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{
			excluding(configv1.WafPart_WAF_PART_HEADER, "X-Other", ofRule(920274)), excluding(configv1.WafPart_WAF_PART_COOKIE, "other", ofRule(942421)),
		}
	},
	func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{excluding(configv1.WafPart_WAF_PART_ARGUMENT, "q", ofTag("attack-sqli"))}
	},
	func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{
			excluding(configv1.WafPart_WAF_PART_COOKIE, "c", ofTag("attack-xss")), excluding(configv1.WafPart_WAF_PART_COOKIE, "c", ofRule(942421)),
		}
	},
	func(m *configv1.SiteWaf) {
		m.Exclusions = []*configv1.WafExclusion{{Rules: ofTag("attack-xss").Rules, Path: "/post", Part: configv1.WafPart_WAF_PART_ALL}}
	},
	func(m *configv1.SiteWaf) {
		m.Methods, m.ContentTypes, m.Charsets = []string{"PUT"}, []string{"text/xml"}, []string{"utf-8"}
	},
}

// Requests in which all of it matters.
const getAll, postAll = "GET", "POST"

func askedAll(method string) (x *exchange.Exchange, body string) {
	fields := []string{"X-Note: {~}", "Cookie: c=" + xss}
	if method == postAll {
		body = "q=" + url.QueryEscape(sqli) + "&other=" + url.QueryEscape(xss)
		return asked(method, "/post", body, append(fields, form+"; charset=gbk")...), body
	}
	return asked(method, "/?q="+url.QueryEscape(sqli), "", fields...), ""
}

// Everything that a site sets is its own, however many are inspected at once, whether inspected or known.
func TestMixedSettingsAtOnce(t *testing.T) {
	type wantedBy struct {
		method         string
		paranoia, kind int
	}
	wanted := map[wantedBy]verdict{}
	distinct := map[string]bool{}
	for paranoia := 1; paranoia <= maxParanoia; paranoia++ {
		for kind, change := range kindsOfSettings {
			s := settingsOf(t, func(m *configv1.SiteWaf) {
				m.ParanoiaLevel = uint32(paranoia)
				change(m)
			})
			for _, method := range []string{getAll, postAll} {
				x, body := askedAll(method)
				v := judge(t, s, x, body)
				wanted[wantedBy{method, paranoia, kind}] = v
				if paranoia == maxParanoia && method == getAll {
					distinct[rulesText(v)] = true
				}
			}
		}
	}
	// Those that only detect, exclude something else or another path match alike.
	if want := len(kindsOfSettings) - 3; len(distinct) != want {
		t.Fatalf("%d of %d settings differ", len(distinct), want)
	}
	sites := make([]*settings, 1000)
	for i := range sites {
		sites[i] = settingsOf(t, func(m *configv1.SiteWaf) {
			m.ParanoiaLevel, m.AnomalyThreshold = uint32(i/len(kindsOfSettings)%maxParanoia+1), uint32(i+1)
			kindsOfSettings[i%len(kindsOfSettings)](m)
		})
	}
	e := component.Of(sharedCore())
	rounds := 10
	if edgetest.UnderRace {
		rounds = 4
	}
	// The stage gives up on a request that waits long for its turn: here each has one.
	turns := make(chan struct{}, int(e.queue.general.Load()))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range rounds {
				i := random.IntN(len(sites))
				s, method := sites[i], []string{getAll, postAll}[random.IntN(2)]
				want := wanted[wantedBy{method, i/len(kindsOfSettings)%maxParanoia + 1, i % len(kindsOfSettings)}]
				x, body := askedAll(method)
				if v := judge(t, s, x, body); v.score != want.score || rulesText(v) != rulesText(want) {
					t.Errorf("site %d, %s: %v and not %v", i, method, v, want)
				}
				// Once it is inspected, and the second time it may be known.
				for range 2 {
					x, _ := askedAll(method)
					blocked := s.block && want.score >= s.threshold
					turns <- struct{}{}
					answer := e.stage(x, s)
					<-turns
					found, _ := exchange.WAF.Known(x)
					if found.Score != want.score || found.Blocked != blocked || (answer != nil) != blocked || rulesText(verdict{rules: found.Rules}) != rulesText(want) {
						t.Errorf("site %d, %s: %+v and not %v, blocked %v", i, method, found, want, blocked)
					}
					x.Reset()
				}
			}
		})
	}
	all.Wait()
	if e.verdicts.hits == 0 {
		t.Error("no verdict was known")
	}
}

// rulesText is which rules matched, in whatever order.
func rulesText(v verdict) string { return fmt.Sprint(slices.Sorted(slices.Values(v.rules))) }
