package core

import (
	"crypto/sha256"

	"edge.svc/caddy/exchange"
)

// Edit is one change on its way from the published tables to the next ones.
type Edit struct {
	Core *Core
	// Tables are the next ones; settings may be set in them.
	Tables *exchange.Tables

	state *writerState
	// What serves while the edit is made.
	published *exchange.Tables
	// The edit starts from nothing instead of from what is published.
	whole bool
	// Sites with entries that are lacking, or guards that fail, before the edit or after it.
	judged map[string]struct{}
}

// Owner is the token of this edit: what it made itself it may change in place.
func (e *Edit) Owner() *exchange.Owner { return e.Tables.Owner() }

// Serving is what serves while the edit is made.
func (e *Edit) Serving() *exchange.Tables { return e.published }

// Whole reports that the edit starts from nothing: everything in its tables is its own.
func (e *Edit) Whole() bool { return e.whole }

var writerStates []func() any

// WriterState is a slot for what a feature needs to make the next tables, and requests do not. Changes of it cannot
// fail, and are only seen by edits.
type WriterState[T any] struct{ index int }

// NewWriterState registers a slot; make makes what is in it before the first entry. Call it from a package variable.
func NewWriterState[T any](make func() *T) WriterState[T] {
	writerStates = append(writerStates, func() any { return make() })
	return WriterState[T]{len(writerStates) - 1}
}

// Of returns what is in the slot.
func (s WriterState[T]) Of(e *Edit) *T { return e.state.features[s.index].(*T) }

type entryKey struct{ kind, id string }

// writerState is what only the writer needs to make the next tables. Changes of it cannot fail.
type writerState struct {
	features []any
	// Names claimed by more than one site: the numbers of the sites.
	contested map[siteName][]uint32
	// Entries that are parts of sites which are not there.
	waiting map[string][]partEntry
	// Body hashes of the running entries other than parts of sites, which know theirs.
	running map[entryKey][sha256.Size]byte
	failed  map[entryKey]*failure
	// Keys whose newest version is lacking; whether it came before the node served its site.
	lacking map[entryKey]bool
	// Kinds of the lacking entries of an id.
	lackingOf map[string]map[string]struct{}

	// The first number that no site had yet, and those that sites gave back.
	nextNumber  uint32
	freeNumbers []uint32
}

func newWriterState() *writerState {
	s := &writerState{
		contested:  map[siteName][]uint32{},
		waiting:    map[string][]partEntry{},
		running:    map[entryKey][sha256.Size]byte{},
		failed:     map[entryKey]*failure{},
		lacking:    map[entryKey]bool{},
		lackingOf:  map[string]map[string]struct{}{},
		nextNumber: 1,
	}
	for _, make := range writerStates {
		s.features = append(s.features, make())
	}
	return s
}

// takeNumber returns the number of a site that is new in this edit: the one it has in what serves, else one that no site
// has. An edit of everything gives out no number that was given back, because others may still have theirs.
func (e *Edit) takeNumber(id string) uint32 {
	s := e.state
	if e.whole {
		if number, ok := namesOf(e.published).ids.Get(id); ok {
			return number
		}
	} else if last := len(s.freeNumbers) - 1; last >= 0 {
		number := s.freeNumbers[last]
		s.freeNumbers = s.freeNumbers[:last]
		return number
	}
	s.nextNumber++
	return s.nextNumber - 1
}

func (e *Edit) giveBackNumber(number uint32) {
	if !e.whole {
		e.state.freeNumbers = append(e.state.freeNumbers, number)
	}
}

// settleNumbers finds the numbers that nobody has after an edit of everything.
func (e *Edit) settleNumbers() {
	e.state.freeNumbers = nil
	for number := uint32(1); number < e.state.nextNumber; number++ {
		if e.Tables.Plan(number) == nil {
			e.state.freeNumbers = append(e.state.freeNumbers, number)
		}
	}
}
