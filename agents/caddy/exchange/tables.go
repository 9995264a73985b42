package exchange

import (
	"sync/atomic"
	"unsafe"
)

// Tables is all configuration at one moment. It is immutable once published: a request loads it once and sees one
// configuration from its first stage to its last. What is in it belongs to the features that registered it.
type Tables struct {
	settings []any
	plans    planVector
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
func NewTables() *Tables { return &Tables{settings: make([]any, len(settingNames))} }

// Clone copies tables to be changed and published next. It costs the same whatever the number of sites.
func (t *Tables) Clone() *Tables {
	next := &Tables{settings: make([]any, len(settingNames)), plans: t.plans}
	copy(next.settings, t.settings)
	return next
}

// Plan returns the plan of the site with this number, nil when there is none.
func (t *Tables) Plan(number uint32) *Plan { return t.plans.get(number) }

// SetPlan puts a plan, or nil, into tables that are not published yet.
func (t *Tables) SetPlan(number uint32, p *Plan) { t.plans = t.plans.set(number, p) }

// planVector holds plans by number in chunks, so that a change copies one chunk and the list of chunks.
type planVector struct{ chunks []*[planChunk]*Plan }

const planChunk = 512

func (v planVector) get(number uint32) *Plan {
	if at := int(number / planChunk); at < len(v.chunks) && v.chunks[at] != nil {
		return v.chunks[at][number%planChunk]
	}
	return nil
}

func (v planVector) set(number uint32, p *Plan) planVector {
	at := int(number / planChunk)
	next := planVector{make([]*[planChunk]*Plan, max(len(v.chunks), at+1))}
	copy(next.chunks, v.chunks)
	chunk := new([planChunk]*Plan)
	if next.chunks[at] != nil {
		*chunk = *next.chunks[at]
	}
	chunk[number%planChunk] = p
	next.chunks[at] = chunk
	return next
}

// Plan is one version of a site as its requests meet it: the parts of it that features registered. It is immutable but
// for parts that are compiled when the first request needs them: most of a hundred thousand sites are idle at any time,
// and their parts would be the larger part of the memory.
type Plan struct {
	// SiteID is the site's id.
	SiteID string
	// Number is the site's number in this process; it stays while the site exists.
	Number uint32
	parts  []unsafe.Pointer
	source PartSource
}

// PartSource compiles a part of a plan at its first use; it returns nil for a part that the site does not have.
type PartSource interface {
	CompilePart(p *Plan, index int) unsafe.Pointer
}

var partNames []string

// Part is a slot of plans: what one feature keeps for a site. Make it with NewPart while the program starts.
type Part[T any] struct{ index int }

// NewPart registers a part. Call it from a package variable or init; svccore knows how a part comes about.
func NewPart[T any](name string) Part[T] {
	partNames = append(partNames, name)
	return Part[T]{len(partNames) - 1}
}

// Index is the place of the part in plans.
func (s Part[T]) Index() int { return s.index }

// absent stands for a part that was looked for and is not there.
var absent byte

// Of returns the part of a plan, nil when the site does not have it. It costs one load once it was asked for.
func (s Part[T]) Of(p *Plan) *T {
	at := &p.parts[s.index]
	part := atomic.LoadPointer(at)
	if part == nil {
		part = p.compile(s.index)
	}
	if part == unsafe.Pointer(&absent) {
		return nil
	}
	return (*T)(part)
}

func (p *Plan) compile(index int) unsafe.Pointer {
	part := p.source.CompilePart(p, index)
	if part == nil {
		part = unsafe.Pointer(&absent)
	}
	// Two first requests at once must agree on one part, which may hold what they share.
	if !atomic.CompareAndSwapPointer(&p.parts[index], nil, part) {
		part = atomic.LoadPointer(&p.parts[index])
	}
	return part
}

// NewPlan makes a plan whose parts come from source when they are asked for.
func NewPlan(siteID string, number uint32, source PartSource) *Plan {
	return &Plan{SiteID: siteID, Number: number, parts: make([]unsafe.Pointer, len(partNames)), source: source}
}

// Next makes the plan that follows p, from another source: parts for which keep answers true stay as they are, compiled
// or not; the others are compiled anew.
func (p *Plan) Next(source PartSource, keep func(index int) bool) *Plan {
	next := NewPlan(p.SiteID, p.Number, source)
	for i := range next.parts {
		if i < len(p.parts) && keep(i) {
			next.parts[i] = atomic.LoadPointer(&p.parts[i])
		}
	}
	return next
}
