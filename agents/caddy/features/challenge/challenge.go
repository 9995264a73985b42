package challenge

import (
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// Visit is a request as far as challenges care, with what its site wants of them.
type Visit struct {
	SiteID string
	Client netip.Addr
	// Secure says that the request came over HTTPS.
	Secure    bool
	RequestID string
	// PassTTL is how long a pass is good for.
	PassTTL time.Duration
	// Leading zero bits of the proofs of work.
	PowBits, PowHighBits uint8
}

// Challenges makes and checks challenges for all sites of a node. Make it with New; nothing passes before SetKeys.
type Challenges struct {
	now  func() time.Time
	keys atomic.Pointer[keySet]
	mu   sync.Mutex

	spent *replayStore
	// Passes given with a 302, by where they were given; and answers that were right, by whose they were.
	redirects, verified *recent
	captchas            captchaPool
	counters            counters
	// In every nonce made here, to tell challenges of this process from others.
	origin [originBytes]byte
}

const (
	originBytes = 4
	// A client that got a pass by redirect so often in so many seconds, and came without it again, does not keep cookies.
	maxRedirects, redirectSeconds = 3, 10
	// The same for one that answered a challenge.
	verifiedSeconds = 60
)

type counters struct {
	served, passed                                                [Captcha]atomic.Uint64
	failed, replayed, overflowed, captchaFallbacks, fromElsewhere atomic.Uint64
}

// Counters are the numbers since the process started, levels 1-4 at indexes 0-3.
type Counters struct {
	// Served counts challenges shown, Passed those that were passed.
	Served, Passed [Captcha]uint64
	// Failed counts wrong answers, Replayed those given twice, Overflowed those that met a full store.
	Failed, Replayed, Overflowed uint64
	// CaptchaFallbacks counts captchas for which there was no image.
	CaptchaFallbacks uint64
	// FromElsewhere counts right answers to challenges that another node, or a former process, had made.
	FromElsewhere uint64
}

// Options of Challenges; the zero value is good.
type Options struct {
	// ReplayBytes is the room for answered challenges.
	ReplayBytes int
	Now         func() time.Time
}

// New makes Challenges without keys.
func New(o Options) *Challenges {
	if o.ReplayBytes == 0 {
		o.ReplayBytes = DefaultReplayBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Challenges{
		now: o.Now, spent: newReplayStore(o.ReplayBytes), redirects: newRecent(redirectSeconds), verified: newRecent(verifiedSeconds),
	}
	// Drawing goes on beside whoever turns the other clock.
	c.captchas.now = time.Now
	// Never fails.
	_, _ = rand.Read(c.origin[:])
	return c
}

// SetKeys replaces the keys. What was signed with a key that stays is good on.
func (c *Challenges) SetKeys(keys Keys) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, err := newKeySet(keys, c.keys.Load())
	if err == nil {
		c.keys.Store(set)
		go preparePages()
	}
	return err
}

// KeysVersion is the version of the keys in use, 0 when there are none.
func (c *Challenges) KeysVersion() uint64 {
	if keys := c.keys.Load(); keys != nil {
		return keys.version
	}
	return 0
}

// Counters returns the numbers of this moment.
func (c *Challenges) Counters() (n Counters) {
	for i := range n.Served {
		n.Served[i], n.Passed[i] = c.counters.served[i].Load(), c.counters.passed[i].Load()
	}
	n.Failed, n.Replayed, n.Overflowed = c.counters.failed.Load(), c.counters.replayed.Load(), c.counters.overflowed.Load()
	n.CaptchaFallbacks, n.FromElsewhere = c.counters.captchaFallbacks.Load(), c.counters.fromElsewhere.Load()
	return n
}

// Admit answers a request that has not what is demanded of it, and nil where it may go on.
func (c *Challenges) Admit(x *exchange.Exchange, v *Visit, demand Demand) *exchange.Answer {
	if demand.Level == Normal {
		return nil
	}
	keys := c.keys.Load()
	if keys == nil {
		return pages.Respond(x, http.StatusServiceUnavailable, pages.ChallengeUnavailable)
	}
	b := bind(v.SiteID, v.Client, userAgent(x))
	now := c.now().Unix()
	if pass := passOf(x, keys, &b, now); pass.level >= demand.Level {
		if now-pass.issued <= verifiedSeconds {
			c.cookieKept(x, v, &b, now)
		}
		return nil
	}
	if x.In.Method != http.MethodGet && x.In.Method != http.MethodHead {
		x.Mark(blockedMark)
		return refuse(x, "required")
	}
	c.served(x, demand.Level)
	if demand.Level == Cookie302 {
		return c.redirect(x, v, keys, &b, now)
	}
	shown := noNotice
	if c.verified.take(c.verified.key(&b, v.Client, ""), now) {
		shown = cookieLost
	}
	return c.show(x, v, keys, &b, demand, now, shown, "")
}

// cookieKept takes a client off the list of those that seem to lose cookies.
func (c *Challenges) cookieKept(x *exchange.Exchange, v *Visit, b *binding, now int64) {
	if c.redirects.take(c.redirects.key(b, netip.Addr{}, x.In.Target.Raw), now) {
		c.passed(x, Cookie302)
	}
	c.verified.take(c.verified.key(b, v.Client, ""), now)
}

// redirect sends the client back to where it is, with a pass; or tells it that it does not keep cookies.
func (c *Challenges) redirect(x *exchange.Exchange, v *Visit, keys *keySet, b *binding, now int64) *exchange.Answer {
	target := x.In.Target.Raw
	// The page for those who lose cookies carries a pass as well: it may be others behind the same address that do.
	pass := passHeaders(keys.current, b, Cookie302, now, v.PassTTL, v.Secure)
	if c.redirects.add(c.redirects.key(b, netip.Addr{}, target), now) > maxRedirects {
		a := c.respond(x, http.StatusForbidden, typeCookie, &filling{back: selfLocation(target), requestID: v.RequestID})
		a.Header["Set-Cookie"] = pass
		return a
	}
	a := x.Respond(http.StatusFound)
	h := a.Header
	h["Set-Cookie"] = pass
	h[headerChallenge] = challengeNames[Cookie302]
	h["Cache-Control"] = noStore
	h["Location"] = []string{selfLocation(target)}
	return a
}

// show is the page of a demand above cookie302. back is where its answer leads, "" for the address it is shown at.
func (c *Challenges) show(x *exchange.Exchange, v *Visit, keys *keySet, b *binding, demand Demand, now int64, shown notice, back string) *exchange.Answer {
	t := token{level: demand.Level, issued: now, expires: now + tokenSeconds}
	f := filling{requestID: v.RequestID, notice: shown, back: back, ownPage: back == "", highBits: v.PowHighBits}
	// Programs get no token: they could not answer, and an image would be lost on them.
	if x.In.Method == http.MethodHead || !wantsPage(x) {
		t.kind = kindOf(demand)
		return c.respond(x, http.StatusForbidden, t.kind, &f)
	}
	c.nonce(&t.nonce)
	switch t.kind = kindOf(demand); t.kind {
	case typeCaptcha:
		if image := c.captchas.take(); image != nil {
			t.answer = captchaHash(keys.current, t.nonce[:], image.answer)
			f.image = image.png
			break
		}
		c.counters.captchaFallbacks.Add(1)
		t.kind, t.bits = typePow, v.PowHighBits
	case typePow:
		if t.bits = v.PowBits; demand.Level == Captcha {
			t.bits = v.PowHighBits
		}
	}
	f.bits = t.bits
	if t.kind == typeCaptcha && f.ownPage {
		if f.back = returnPath(x.In.Target.Raw); escapedBytes(f.back) > maxBackBytes {
			f.back = "/"
		}
	}
	var scratch [512]byte
	f.token = appendToken(scratch[:0], keys.current, b, &t)
	return c.respond(x, http.StatusForbidden, t.kind, &f)
}

// maxBackBytes leaves room for the token in a form of the largest size.
const maxBackBytes = 2560

func kindOf(demand Demand) string {
	switch {
	case demand.Level == JS:
		return typeJS
	case demand.Level == Captcha && !demand.HighPow:
		return typeCaptcha
	}
	return typePow
}

// nonce makes what no other challenge has: who made it, and a random number.
func (c *Challenges) nonce(text *[nonceText]byte) {
	var raw [nonceBytes]byte
	copy(raw[:], c.origin[:])
	binary.LittleEndian.PutUint64(raw[originBytes:], mrand.Uint64())
	encoding.Encode(text[:], raw[:])
}

// madeHere reports whether this process made a challenge.
func (c *Challenges) madeHere(t *token) bool {
	var raw [nonceBytes]byte
	_, err := encoding.Decode(raw[:], t.nonce[:])
	return err == nil && [originBytes]byte(raw[:]) == c.origin
}

func userAgent(x *exchange.Exchange) string {
	if values := x.In.Header["User-Agent"]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// wantsPage reports whether somebody would look at a page: not what a script or an element of a page asks for, nor an
// upgrade or a prefetch.
func wantsPage(x *exchange.Exchange) bool {
	h := x.In.Header
	if dest := h["Sec-Fetch-Dest"]; len(dest) > 0 && dest[0] != "document" && dest[0] != "iframe" {
		return false
	}
	if x.In.Upgrade {
		return false
	}
	for _, name := range [...]string{"Sec-Purpose", "Purpose"} {
		if value := h[name]; len(value) > 0 && strings.HasPrefix(value[0], "prefetch") {
			return false
		}
	}
	return true
}
