package exchange

import (
	"sync/atomic"
	"unsafe"
)

// Plan is one version of a site as its requests meet it: the parts of it that features registered. It is immutable but
// for parts that are compiled when the first request needs them: most of a hundred thousand sites are idle at any time,
// and their parts would be the larger part of the memory.
type Plan struct {
	// SiteID is the site's id.
	SiteID string
	// Number is the site's number in this process; it stays while the site exists, and may be another's afterwards.
	Number uint32
	// Disabled sites keep their names and answer nothing of their own.
	Disabled bool
	// Unserved sites came with an entry that this node holds, before it served them: they answer nothing of their own.
	Unserved bool
	// Unguarded sites have an entry that denies what must not pass, and no version of it that compiles: they answer nothing
	// of their own either.
	Unguarded bool

	// A bit for each part that was looked for and is not there. Most sites have few parts: that they lack the others is
	// known without a look at their slots, which with thousands of sites are in no cache.
	lacks atomic.Uint64
	parts []unsafe.Pointer
	// Of all versions of the site.
	live   *liveSlots
	source PartSource
}

const maxParts = 64

// PartSource compiles a part of a plan at its first use; it returns nil for a part that the site does not have.
type PartSource interface {
	CompilePart(p *Plan, index int) unsafe.Pointer
}

var partNames []string

// Part is a slot of plans: what one feature keeps for a site. Make it with NewPart while the program starts.
type Part[T any] struct{ index int }

// NewPart registers a part. Call it from a package variable or init; core knows how a part comes about.
func NewPart[T any](name string) Part[T] {
	if len(partNames) == maxParts {
		panic("plans have no room for the part " + name)
	}
	partNames = append(partNames, name)
	return Part[T]{len(partNames) - 1}
}

// Index is the place of the part in plans.
func (s Part[T]) Index() int { return s.index }

// Of returns the part of a plan, nil when the site does not have it. It costs a load or two once it was asked for.
func (s Part[T]) Of(p *Plan) *T {
	if p.lacks.Load()&(1<<s.index) != 0 {
		return nil
	}
	part := atomic.LoadPointer(&p.parts[s.index])
	if part == nil {
		part = p.compile(s.index)
	}
	return (*T)(part)
}

func (p *Plan) compile(index int) unsafe.Pointer {
	part := p.source.CompilePart(p, index)
	// Two first requests at once must agree on one part, which may hold what they share.
	if part == nil {
		p.lacks.Or(1 << index)
	} else if !atomic.CompareAndSwapPointer(&p.parts[index], nil, part) {
		part = atomic.LoadPointer(&p.parts[index])
	}
	return part
}

// Init makes a plan whose parts come from source when they are asked for. It follows before, another version of the same
// site, where that is not nil: what is live goes on.
func (p *Plan) Init(siteID string, number uint32, disabled bool, source PartSource, before *Plan) {
	p.SiteID, p.Number, p.Disabled = siteID, number, disabled
	p.parts, p.source = make([]unsafe.Pointer, len(partNames)), source
	if before != nil {
		p.live = before.live
	} else {
		p.live = new(liveSlots)
	}
}

// Source is where the parts of the plan come from.
func (p *Plan) Source() PartSource { return p.source }

// Inherit takes the parts of another plan for which keep answers true, compiled or not, into one that nobody else has yet.
func (p *Plan) Inherit(from *Plan, keep func(index int) bool) {
	for i := range p.parts {
		if keep(i) {
			p.parts[i] = atomic.LoadPointer(&from.parts[i])
			p.lacks.Or(from.lacks.Load() & (1 << i))
		}
	}
}

var liveNames []string

// liveSlots come into being with the first of them that is filled: most sites are idle.
type liveSlots struct {
	made atomic.Pointer[[maxLive]unsafe.Pointer]
}

const maxLive = 4

// Live is a slot of sites for what is counted or remembered while they are served. It lies beside their plans: every
// version of a site has the same one, and it ends with the site. Make it with NewLive while the program starts.
type Live[T any] struct{ index int }

// NewLive registers a slot. Call it from a package variable or init.
func NewLive[T any](name string) Live[T] {
	if len(liveNames) == maxLive {
		panic("sites have no room for " + name)
	}
	liveNames = append(liveNames, name)
	return Live[T]{len(liveNames) - 1}
}

// Of returns what is in the slot of the plan's site, nil while nobody put anything there.
func (s Live[T]) Of(p *Plan) *T {
	if slots := p.live.made.Load(); slots != nil {
		return (*T)(atomic.LoadPointer(&slots[s.index]))
	}
	return nil
}

// Put fills the slot of the plan's site, unless somebody was faster, and returns what is in it.
func (s Live[T]) Put(p *Plan, v *T) *T {
	if p.live.made.Load() == nil {
		p.live.made.CompareAndSwap(nil, new([maxLive]unsafe.Pointer))
	}
	if atomic.CompareAndSwapPointer(&p.live.made.Load()[s.index], nil, unsafe.Pointer(v)) {
		return v
	}
	return s.Of(p)
}
