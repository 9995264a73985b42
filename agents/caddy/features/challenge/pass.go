package challenge

import (
	"strconv"
	"strings"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	passVersion  = "v1."
	maxPassBytes = 1024
	// Of each name: a sibling's cookie of the whole domain may come before ours.
	maxPassCookies = 4
	// No setting gives a longer life, so no node ever signed one.
	maxPassSeconds = 86_400
	// Clocks of the nodes of a cluster may differ; what another one made may seem to be from the future.
	maxAheadSeconds = 300
)

// appendPass appends a pass: "v1.<key id>.<payload>.<mac>" with the payload site|level|network|agent|issued|expires.
func appendPass(dst []byte, key *signer, b *binding, level Level, issued, expires int64) []byte {
	var scratch [256]byte
	payload := append(scratch[:0], b.site...)
	payload = append(payload, '|', '0'+byte(level), '|')
	payload = append(payload, b.networkText()...)
	payload = append(payload, '|')
	payload = append(payload, b.agent[:]...)
	payload = strconv.AppendInt(append(payload, '|'), issued, 10)
	payload = strconv.AppendInt(append(payload, '|'), expires, 10)

	start := len(dst)
	dst = append(dst, passVersion...)
	dst = append(dst, key.id...)
	dst = encoding.AppendEncode(append(dst, '.'), payload)
	sum := key.sign("", textOf(dst[start:]))
	return encoding.AppendEncode(append(dst, '.'), sum[:])
}

// heldPass is a good pass of a client, Normal where it has none.
type heldPass struct {
	level           Level
	issued, expires int64
}

// checkPass reads a pass; ok is false for one that is forged, altered, expired, or of another site, network or browser.
func checkPass(keys *keySet, b *binding, value string, now int64) (pass heldPass, ok bool) {
	if len(value) > maxPassBytes || !strings.HasPrefix(value, passVersion) {
		return heldPass{}, false
	}
	dot := strings.LastIndexByte(value, '.')
	id, encoded, found := strings.Cut(value[len(passVersion):max(dot, len(passVersion))], ".")
	if !found {
		return heldPass{}, false
	}
	key := keys.find(id)
	if key == nil {
		return heldPass{}, false
	}
	var decoded [maxPassBytes]byte
	n, err := encoding.Decode(decoded[:], bytesOf(encoded))
	if err != nil {
		return heldPass{}, false
	}
	f := fields{rest: decoded[:n]}
	mine := f.is(b.site)
	l := f.number()
	mine = string(f.next()) == string(b.networkText()) && mine
	mine = string(f.next()) == string(b.agent[:]) && mine
	issued, expires := f.number(), f.number()
	if !mine || !f.end() || l < int64(Cookie302) || l > int64(Captcha) {
		return heldPass{}, false
	}
	if expires <= now || expires-issued > maxPassSeconds || issued > now+maxAheadSeconds {
		return heldPass{}, false
	}
	if !key.verify("", value[:dot], value[dot+1:]) {
		return heldPass{}, false
	}
	return heldPass{Level(l), issued, expires}, true
}

// bestPass returns the pass of the highest level in the Cookie headers of a request, of equal ones the one that lives longest.
func bestPass(keys *keySet, b *binding, headers []string, now int64) (best heldPass) {
	left, leftPlain, last := maxPassCookies, maxPassCookies, ""
	for _, header := range headers {
		for header != "" && left+leftPlain > 0 {
			var pair string
			pair, header, _ = strings.Cut(header, ";")
			name, value, found := strings.Cut(strings.Trim(pair, " \t"), "=")
			of := &left
			switch {
			case !found || !exchange.IsPassCookie(name):
				continue
			case name == exchange.PlainPassCookie:
				of = &leftPlain
			}
			if *of == 0 {
				continue
			}
			*of--
			// Browsers send the same pass under both names over plain HTTP.
			if value == last {
				continue
			}
			last = value
			pass, ok := checkPass(keys, b, value, now)
			if ok && (pass.level > best.level || pass.level == best.level && pass.expires > best.expires) {
				best = pass
			}
		}
	}
	return best
}

var heldPasses = exchange.NewFact[heldPass]()

// passOf finds the best pass of a request, once.
func passOf(x *exchange.Exchange, keys *keySet, b *binding, now int64) heldPass {
	if known, ok := heldPasses.Known(x); ok {
		return known
	}
	pass := heldPasses.Of(x)
	*pass = bestPass(keys, b, x.In.Header["Cookie"], now)
	return *pass
}

// PassLevel is the highest level that the client of an exchange has a pass of; without keys nobody has one.
func (c *Challenges) PassLevel(x *exchange.Exchange) Level {
	keys := c.keys.Load()
	if keys == nil {
		return Normal
	}
	b := bind(x.Plan.SiteID, x.In.Client, userAgent(x))
	return passOf(x, keys, &b, c.now().Unix()).level
}

// passHeaders makes the values of Set-Cookie that carry a pass: one, and over plain HTTP a second one under the name that no
// Secure cookie hides.
func passHeaders(key *signer, b *binding, level Level, now int64, life time.Duration, secure bool) []string {
	seconds := min(int64(life/time.Second), maxPassSeconds)
	var scratch [512]byte
	out := append(scratch[:0], exchange.PassCookie+"="...)
	out = appendPass(out, key, b, level, now, now+seconds)
	out = append(out, "; Path=/; Max-Age="...)
	out = strconv.AppendInt(out, seconds, 10)
	out = append(out, "; HttpOnly; SameSite=Lax"...)
	if secure {
		return []string{string(append(out, "; Secure"...))}
	}
	header := string(out)
	return []string{header, exchange.PlainPassCookie + header[len(exchange.PassCookie):]}
}
