package exchange

// fact is what one feature remembers of an exchange. It is made once for a pooled exchange and used again.
type fact struct {
	value any
	known bool
	reset func(value any)
}

var facts int

// Fact is a slot of an exchange in which a feature keeps what it found out, for its own later stages or for other
// features. Make it with NewFact while the program starts.
type Fact[T any] struct{ index int }

// NewFact registers a fact. Call it from a package variable or init.
func NewFact[T any]() Fact[T] {
	facts++
	return Fact[T]{facts - 1}
}

// Of returns the fact of an exchange, to be read and changed. It starts as its zero value and is the exchange's own: keep
// no pointer to it after the end of the exchange.
func (f Fact[T]) Of(x *Exchange) *T {
	for len(x.facts) <= f.index {
		x.facts = append(x.facts, fact{})
	}
	at := &x.facts[f.index]
	if at.value == nil {
		at.value, at.reset = new(T), func(v any) { *(v.(*T)) = *new(T) }
	}
	if !at.known {
		at.known = true
		x.known = append(x.known, f.index)
	}
	return at.value.(*T)
}

// Known returns the value of the fact and whether a stage has set it. It makes nothing.
func (f Fact[T]) Known(x *Exchange) (v T, ok bool) {
	if f.index < len(x.facts) && x.facts[f.index].known {
		return *(x.facts[f.index].value.(*T)), true
	}
	return v, false
}

// Peek is Known for values that are dear to copy: nil where no stage has set it. Only the one who sets a fact changes it.
func (f Fact[T]) Peek(x *Exchange) *T {
	if f.index < len(x.facts) && x.facts[f.index].known {
		return x.facts[f.index].value.(*T)
	}
	return nil
}

// forgetFacts makes every fact of an exchange its zero value again.
func (x *Exchange) forgetFacts() {
	for _, index := range x.known {
		at := &x.facts[index]
		at.reset(at.value)
		at.known = false
	}
	x.known = x.known[:0]
}

// LazyFact is a fact that is found out when somebody first asks for it.
type LazyFact[T any] struct {
	fact Fact[T]
	find func(*Exchange) T
}

// NewLazyFact registers a fact that find finds out.
func NewLazyFact[T any](find func(*Exchange) T) LazyFact[T] { return LazyFact[T]{NewFact[T](), find} }

// Of returns the fact; find is asked once an exchange.
func (f LazyFact[T]) Of(x *Exchange) T {
	if v, ok := f.fact.Known(x); ok {
		return v
	}
	v := f.find(x)
	*f.fact.Of(x) = v
	return v
}
