package exchange

import "iter"

// Owner stands for one run of changes, from published tables to the next ones. What a run made itself it may change in
// place, because nobody else has seen it yet; everything else it copies first. Two owners are never the same.
type Owner struct{ _ byte }

// Tables is all configuration at one moment. It is immutable once published: a request loads it once and sees one
// configuration from its first stage to its last. What is in it belongs to the features that registered it.
type Tables struct {
	settings []any
	plans    planVector
	// Who made these tables. Unlike them it holds on to nothing.
	owner *Owner
}

var settingNames []string

// Setting is a slot of Tables: something the node has one of, such as who its proxies are. Make it with NewSetting while
// the program starts.
type Setting[T any] struct {
	index int
	unset T
}

// NewSetting registers a setting; unset is its value while nobody has set it. Call it from a package variable or init.
func NewSetting[T any](name string, unset T) Setting[T] {
	settingNames = append(settingNames, name)
	return Setting[T]{len(settingNames) - 1, unset}
}

// Of returns the setting in tables.
func (s Setting[T]) Of(t *Tables) T {
	if s.index < len(t.settings) {
		if v, ok := t.settings[s.index].(T); ok {
			return v
		}
	}
	return s.unset
}

// Set puts the setting into tables that are not published yet.
func (s Setting[T]) Set(t *Tables, v T) {
	t.settings[s.index] = v
}

// Reset takes the setting out of tables that are not published yet.
func (s Setting[T]) Reset(t *Tables) { t.settings[s.index] = nil }

// NewTables makes tables in which nothing is set and no site exists.
func NewTables() *Tables { return &Tables{settings: make([]any, len(settingNames)), owner: new(Owner)} }

// Clone copies tables to be changed and published next. It costs the same whatever the number of sites.
func (t *Tables) Clone() *Tables {
	next := &Tables{settings: make([]any, len(settingNames)), plans: t.plans, owner: new(Owner)}
	copy(next.settings, t.settings)
	return next
}

// Owner is the run of changes that these tables are made by.
func (t *Tables) Owner() *Owner { return t.owner }

// Plan returns the plan of the site with this number, nil when there is none.
func (t *Tables) Plan(number uint32) *Plan { return t.plans.get(number) }

// Plans goes through the plans of all sites, in no order that means anything.
func (t *Tables) Plans(yield func(*Plan) bool) {
	for _, chunk := range t.plans.chunks {
		if chunk == nil {
			continue
		}
		for _, p := range chunk.plans {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

// PlansSince goes through the numbers whose plan is another one than in former tables, nil where a site is gone. It costs
// what was changed, whatever the number of sites.
func (t *Tables) PlansSince(former *Tables) iter.Seq2[uint32, *Plan] {
	return func(yield func(uint32, *Plan) bool) {
		for at := range max(len(t.plans.chunks), len(former.plans.chunks)) {
			now, before := t.plans.chunk(at), former.plans.chunk(at)
			if now == before {
				continue
			}
			for i := range plansInChunk {
				if p := now.plan(i); p != before.plan(i) && !yield(uint32(at*plansInChunk+i), p) {
					return
				}
			}
		}
	}
}

// SetPlan puts a plan, or nil, into tables that are not published yet.
func (t *Tables) SetPlan(number uint32, p *Plan) { t.plans.set(t.owner, number, p) }

// planVector holds plans by number in chunks, so that a change copies one chunk and the list of chunks; the changes of
// one owner that follow in the same chunk copy nothing.
type planVector struct {
	owner  *Owner
	chunks []*planChunk
}

const plansInChunk = 256

type planChunk struct {
	owner *Owner
	plans [plansInChunk]*Plan
}

func (v *planVector) chunk(at int) *planChunk {
	if at < len(v.chunks) {
		return v.chunks[at]
	}
	return nil
}

// plan is the one at a place in a chunk, which may be missing.
func (c *planChunk) plan(at int) *Plan {
	if c == nil {
		return nil
	}
	return c.plans[at]
}

func (v *planVector) get(number uint32) *Plan {
	if at := int(number / plansInChunk); at < len(v.chunks) && v.chunks[at] != nil {
		return v.chunks[at].plans[number%plansInChunk]
	}
	return nil
}

func (v *planVector) set(owner *Owner, number uint32, p *Plan) {
	at := int(number / plansInChunk)
	if v.owner != owner || at >= len(v.chunks) {
		chunks := make([]*planChunk, max(len(v.chunks), at+1))
		copy(chunks, v.chunks)
		v.owner, v.chunks = owner, chunks
	}
	chunk := v.chunks[at]
	if chunk == nil || chunk.owner != owner {
		next := &planChunk{owner: owner}
		if chunk != nil {
			next.plans = chunk.plans
		}
		chunk, v.chunks[at] = next, next
	}
	chunk.plans[number%plansInChunk] = p
}
