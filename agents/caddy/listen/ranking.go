package listen

// ranking keeps elements in the order of their weights. Adding one to a weight, or taking one, is a step to a
// neighbour, and the heaviest element is at hand, however many there are. Of equal weights the one that changed last
// comes first.
type ranking[T any] struct {
	heaviest, lightest *rank[T]
}

// rank holds the elements of one weight; there is none without an element.
type rank[T any] struct {
	weight           int
	first            *ranked[T]
	heavier, lighter *rank[T]
}

// ranked is the place of an element in a ranking, none while its weight is 0.
type ranked[T any] struct {
	of         *T
	rank       *rank[T]
	next, prev *ranked[T]
}

func (e *ranked[T]) weight() int {
	if e.rank == nil {
		return 0
	}
	return e.rank.weight
}

// top is the heaviest element, nil when there is none.
func (r *ranking[T]) top() *T {
	if r.heaviest == nil {
		return nil
	}
	return r.heaviest.first.of
}

// raise adds one to the weight of an element.
func (r *ranking[T]) raise(e *ranked[T]) {
	weight, above := 1, r.lightest
	if e.rank != nil {
		weight, above = e.rank.weight+1, e.rank.heavier
	}
	if above == nil || above.weight != weight {
		if e.alone() {
			e.rank.weight = weight
			return
		}
		above = r.insert(weight, e.rank, above)
	}
	r.move(e, above)
}

// lower takes one from the weight of an element, which has one.
func (r *ranking[T]) lower(e *ranked[T]) {
	weight, below := e.rank.weight-1, e.rank.lighter
	if weight == 0 {
		r.move(e, nil)
		return
	}
	if below == nil || below.weight != weight {
		if e.alone() {
			e.rank.weight = weight
			return
		}
		below = r.insert(weight, below, e.rank)
	}
	r.move(e, below)
}

func (e *ranked[T]) alone() bool { return e.rank != nil && e.rank.first == e && e.next == nil }

// insert makes a rank between two neighbours, either of which may be missing.
func (r *ranking[T]) insert(weight int, lighter, heavier *rank[T]) *rank[T] {
	made := &rank[T]{weight: weight, heavier: heavier, lighter: lighter}
	if lighter != nil {
		lighter.heavier = made
	} else {
		r.lightest = made
	}
	if heavier != nil {
		heavier.lighter = made
	} else {
		r.heaviest = made
	}
	return made
}

// move puts an element first in a rank, or in none.
func (r *ranking[T]) move(e *ranked[T], to *rank[T]) {
	if from := e.rank; from != nil {
		if e.prev != nil {
			e.prev.next = e.next
		} else {
			from.first = e.next
		}
		if e.next != nil {
			e.next.prev = e.prev
		}
		if from.first == nil {
			r.drop(from)
		}
	}
	e.rank, e.prev, e.next = to, nil, nil
	if to == nil {
		return
	}
	if e.next = to.first; e.next != nil {
		e.next.prev = e
	}
	to.first = e
}

func (r *ranking[T]) drop(empty *rank[T]) {
	if empty.lighter != nil {
		empty.lighter.heavier = empty.heavier
	} else {
		r.lightest = empty.heavier
	}
	if empty.heavier != nil {
		empty.heavier.lighter = empty.lighter
	} else {
		r.heaviest = empty.lighter
	}
}
