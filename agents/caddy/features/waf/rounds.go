package waf

import (
	"io"
	"slices"

	"github.com/corazawaf/coraza/v3/collection"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/corazawaf/coraza/v3/types"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/waf/bodies"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// maxRound is how many bytes of a body the rules see at once. What they make of it for themselves is many times as much, so
// that more of it is inspected in several rounds.
const maxRound = 160 << 10

// look is what is inspected of a body; the zero value is none.
type look struct {
	in    io.ReadSeeker
	whole bool
	// Where the content lies of one that is packed.
	room exchange.Room
}

// rounds are the runs of all rules over one request: each over its head and as much of its body as one run takes. All of
// them together have the time of one inspection.
type rounds struct {
	rules  *ruleSet
	x      *exchange.Exchange
	s      *settings
	body   look
	kind   string
	budget *budget
	// The body as it came, where the content is inspected that it was packed of.
	packed  io.ReadSeeker
	content *unpacked
	// yield lets other requests have a turn; false where there is no other one for this.
	yield func() bool

	tx   types.Transaction
	vars plugintypes.TransactionVariables
	// Exclusions for parts that the present round has not met.
	excluded []*exclusion
	// Bytes of the body in the present round.
	bytes int
	// How many rounds are over, and what they found together.
	over    int
	verdict verdict
	found   found
	// Why there are no more rounds.
	err error
}

// inspect runs the rules over a request. It fails with errTime, with errBusy where yield reports
// false, or where what was kept of the body cannot be read.
func (r *ruleSet) inspect(x *exchange.Exchange, s *settings, body look, yield func() bool) (v verdict, err error) {
	b := takeBudget(r.patternTime)
	defer b.giveBack()
	b.exact = s.exact
	o := &rounds{rules: r, x: x, s: s, body: body, kind: bodies.KindOf(x.In.Header.Get("Content-Type")), budget: b, yield: yield}
	defer o.close()
	if coding, coded := codingOf(x); coded && body.in != nil {
		err := errPacked
		if coding != "" {
			err = o.unpack(coding)
		}
		if o.content != nil {
			defer o.content.close()
		}
		if o.verdict.unread = err == errPacked; err != nil && !o.verdict.unread {
			return v, err
		}
	}
	o.begin()
	if body.in != nil {
		if err := o.readBody(); err != nil {
			return v, err
		}
	}
	o.end()
	if o.over > 1 && o.err == nil {
		o.deduct()
	}
	o.verdict.matches, o.verdict.seen = o.found.kept(), len(o.found.list)
	return o.verdict, o.err
}

// begin starts a round with the head of the request.
func (o *rounds) begin() {
	o.tx, o.bytes = o.rules.waf.NewTransactionWithID(o.budget.id), 0
	o.budget.raws = nil
	o.vars = o.tx.(plugintypes.TransactionState).Variables()
	o.s.fill(o.vars, o.x.In.Header.Get("Content-Type"))
	target := o.x.Target()
	o.excluded = o.s.exclude(o.tx.(remover), target)
	readHead(o.x, target, o.tx, o.vars)
	if o.body.whole {
		readTrailer(o.x.In.Trailer, o.vars)
	}
	o.vars.TX().Set("restricted_headers_basic", []string{o.s.restricted(o.x.In.Header, o.packed != nil)})
	bodies.Set(o.vars.RequestBodyProcessor(), "")
	if o.body.in != nil {
		bodies.Set(o.vars.RequestBodyProcessor(), o.kind)
	}
	o.exclude(configv1.WafPart_WAF_PART_HEADER, o.vars.RequestHeaders())
	o.exclude(configv1.WafPart_WAF_PART_COOKIE, o.vars.RequestCookies())
	o.exclude(configv1.WafPart_WAF_PART_ARGUMENT, o.vars.ArgsGet())
	o.tx.ProcessRequestHeaders()
}

// exclude leaves alone what is excluded of a part of the request.
func (o *rounds) exclude(part configv1.WafPart, of collection.Collection) {
	if len(o.excluded) > 0 {
		o.excluded = excludeParts(o.tx.(remover), o.excluded, part, of.FindAll())
	}
}

// end takes what the round found.
func (o *rounds) end() {
	if o.err != nil {
		return
	}
	o.exclude(configv1.WafPart_WAF_PART_ARGUMENT, o.vars.ArgsPost())
	o.budget.raws = nil
	if _, err := o.tx.ProcessRequestBody(); err != nil {
		o.err = err
		return
	}
	v := verdictOf(o.tx, o.vars, o.s.values, &o.found)
	o.over++
	o.verdict.score += v.score
	for _, id := range v.rules {
		if !slices.Contains(o.verdict.rules, id) {
			o.verdict.rules = append(o.verdict.rules, id)
		}
	}
	// What others than patterns computed counts between rounds.
	if o.budget.over || o.over > 1 && o.budget.exceeded() {
		o.err = errTime
	}
	o.close()
}

// close gives the present transaction back.
func (o *rounds) close() {
	if o.tx == nil {
		return
	}
	if err := o.tx.Close(); err != nil && o.err == nil {
		o.err = err
	}
	o.tx = nil
}

// room makes a round in which so many more bytes of the body have a place, and returns its variables; nil where there are no
// more rounds.
func (o *rounds) room(bytes int) plugintypes.TransactionVariables {
	if o.bytes > 0 && o.bytes+bytes > maxRound {
		o.next()
	}
	if o.err != nil {
		return nil
	}
	o.bytes += bytes
	return o.vars
}

// next goes on to another round.
func (o *rounds) next() {
	if o.end(); o.err != nil {
		return
	}
	o.budget.excuse(func() {
		if !o.yield() {
			o.err = errBusy
		}
	})
	if o.err == nil {
		o.begin()
	}
}

// deduct takes what the head weighs out of all rounds but one.
func (o *rounds) deduct() {
	whole, all, times := o.verdict, o.found, o.over-1
	o.verdict, o.found = verdict{unread: whole.unread}, found{}
	if o.begin(); o.kind == bodies.Form || o.kind == bodies.Raw {
		// To rules it is something to have a body at all.
		bodies.Set(o.vars.RequestBody(), "-")
		bodies.Set(o.vars.RequestBodyLength(), "1")
	}
	o.end()
	whole.score = max(whole.score-times*o.verdict.score, o.verdict.score)
	all.deduct(&o.found, times)
	o.verdict, o.found = whole, all
}

// Read reads the body, as long as there is time.
func (o *rounds) Read(p []byte) (int, error) {
	if o.err == nil && o.budget.exceeded() {
		o.err = errTime
	}
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.body.in.Read(p)
	if err != nil && err != io.EOF {
		o.err = err
	}
	return n, err
}
