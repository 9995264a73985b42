package origin

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// affinity keeps visitors on the origin that served them, by a signed cookie that holds the origin's id, when it ends, and
// the key: "<origin>.<Unix time>.<key>.<signature>". The signature binds it to the site and the group. No node keeps
// anything of a visitor.
type affinity struct {
	keys exchange.Signer
	now  func() time.Time
}

var affinities = core.NewComponent("session affinity", func(c *core.Core) *affinity {
	return &affinity{core.Find[exchange.Signer](c), c.Now}
})

const (
	// No setting gives a longer life.
	maxAffinitySeconds = 604_800
	// Of each name: a sibling's cookie of the whole domain may come before ours.
	maxAffinityCookies = 4
	maxAffinityBytes   = 512
	// Clocks of the nodes of a cluster may differ.
	maxAhead = 300
)

// pin is the origin that a visitor is kept on.
type pin struct {
	// The id of an origin; "" where the visitor has no valid cookie.
	origin string
	// The cookie stays as it is while that origin serves.
	stays bool
}

var pins = exchange.NewFact[pin]()

// pinned finds the origin of a group that a visitor is kept on; -1 where it is none.
func (a *affinity) pinned(x *exchange.Exchange, g *group) int32 {
	if a == nil || a.keys == nil || len(x.In.Header["Cookie"]) == 0 {
		return -1
	}
	name, plainName := cookieNames(x.Out.Group)
	left, leftPlain := maxAffinityCookies, maxAffinityCookies
	for _, header := range x.In.Header["Cookie"] {
		for header != "" {
			var pair string
			pair, header, _ = strings.Cut(header, ";")
			key, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			switch {
			case key == name && left > 0:
				left--
			case key == plainName && leftPlain > 0:
				leftPlain--
			default:
				continue
			}
			if at, stays := a.read(x, g, value); at >= 0 {
				*pins.Of(x) = pin{g.origins[at].health.origin, stays}
				return at
			}
		}
	}
	return -1
}

// read finds the origin that a cookie names: -1 for a cookie that is forged, over, or of another site or group.
func (a *affinity) read(x *exchange.Exchange, g *group, value string) (at int32, stays bool) {
	if len(value) > maxAffinityBytes {
		return -1, false
	}
	parts := strings.Split(value, ".")
	if len(parts) != 4 {
		return -1, false
	}
	ends, err := strconv.ParseInt(parts[1], 10, 64)
	rest := ends - a.now().Unix()
	if err != nil || rest <= 0 {
		return -1, false
	}
	at = -1
	for i := range g.origins {
		if g.origins[i].health.origin == parts[0] {
			at = int32(i)
			break
		}
	}
	if at < 0 {
		return -1, false
	}
	valid, lasting := a.keys.CheckSignature(signedText(x.Plan.SiteID, x.Out.Group, parts[0], parts[1]), parts[2], parts[3])
	if !valid {
		return -1, false
	}
	ttl := g.pool.affinitySeconds
	return at, lasting && rest >= ttl/2 && rest <= ttl+maxAhead
}

// signedText is what the signature of a cookie is of.
func signedText(site, group, origin, ends string) string {
	text := "affinity|" + site + "|" + origin + "|" + ends
	if group != "" {
		text += "|" + group
	}
	return text
}

func cookieNames(group string) (name, plain string) {
	if group == "" {
		return exchange.AffinityCookie, exchange.PlainAffinityCookie
	}
	return exchange.AffinityCookie + "_" + group, exchange.PlainAffinityCookie + "_" + group
}

// Affinity is the response stage that keeps a visitor on the origin that responded. An origin that is about to be taken
// out keeps nobody.
func Affinity(c *core.Core) exchange.ResponseStage {
	affinity := affinities.Of(c)
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if pool := PoolOf(x.Plan); pool != nil && pool.affinitySeconds > 0 && affinity.keys != nil && !failedStatus(a.Status) {
			affinity.keep(x, pool, a.Header)
		}
	}
}

func (a *affinity) keep(x *exchange.Exchange, p *Pool, h http.Header) {
	origin := exchange.Origin.Of(x).Origin
	if held, known := pins.Known(x); known && held.stays && held.origin == origin {
		return
	}
	ends := strconv.FormatInt(a.now().Unix()+p.affinitySeconds, 10)
	name, plainName := cookieNames(x.Out.Group)
	var scratch [maxAffinityBytes]byte
	value := append(scratch[:0], "="...)
	value = append(value, origin...)
	value = append(append(append(value, '.'), ends...), '.')
	value, signed := a.keys.AppendSignature(value, signedText(x.Plan.SiteID, x.Out.Group, origin, ends))
	if !signed {
		return
	}
	value = append(value, "; Path=/; Max-Age="...)
	value = strconv.AppendInt(value, p.affinitySeconds, 10)
	value = append(value, "; HttpOnly; SameSite=Lax"...)
	if x.In.Secure() {
		h["Set-Cookie"] = append(h["Set-Cookie"], name+string(value)+"; Secure")
		return
	}
	h["Set-Cookie"] = append(h["Set-Cookie"], name+string(value), plainName+string(value))
}

// withoutAffinity is the value of a Cookie field without the cookies of session affinity.
func withoutAffinity(value string) string {
	if !strings.Contains(value, exchange.AffinityCookie) && !strings.Contains(value, exchange.PlainAffinityCookie) {
		return value
	}
	kept := make([]byte, 0, len(value))
	for pair := range strings.SplitSeq(value, ";") {
		name, _, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if exchange.IsAffinityCookie(name) {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, ';')
		} else {
			pair = strings.TrimLeft(pair, " \t")
		}
		kept = append(kept, pair...)
	}
	return string(kept)
}
