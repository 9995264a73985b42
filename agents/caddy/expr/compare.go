package expr

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/gaissmai/bart"
)

// Sets up to this size are looked through.
const smallSet = 8

// equality makes eq, ne and in of values that have the type of the subject.
func equality(op configOp, subject operand, literals []value) (predicate, error) {
	if op == opEq || op == opNe {
		if simple := equalField(op == opEq, subject, literals[0]); simple != nil {
			return simple, nil
		}
	}
	var equal predicate
	var err error
	switch subject.kind {
	case textKind:
		equal, err = textIn(subject, literals)
	case numberKind:
		equal, err = numberIn(subject.number, literals)
	case truthKind:
		equal, err = truthIn(subject.truth, literals)
	case addressKind:
		equal, err = addressIn(subject.field, literals)
	}
	if err != nil || op != opNe {
		return equal, err
	}
	return func(v Values) (bool, Failure) {
		holds, failure := equal(v)
		return !holds, failure
	}, nil
}

// equalField makes eq and ne of a string or boolean that a field is; nil for others.
func equalField(equal bool, subject operand, literal value) predicate {
	field, name := subject.field, subject.name
	switch {
	case field == noField:
		return nil
	case subject.kind == textKind:
		text := literal.text
		return func(v Values) (bool, Failure) { return (v.Text(field, name) == text) == equal, 0 }
	case subject.kind == truthKind:
		truth := (literal.number != 0) == equal
		return func(v Values) (bool, Failure) { return v.Truth(field) == truth, 0 }
	}
	return nil
}

// sorted reports whether each is greater than the one before.
func sorted[T any](values []T, compare func(a, b T) int) bool {
	for i := 1; i < len(values); i++ {
		if compare(values[i-1], values[i]) >= 0 {
			return false
		}
	}
	return true
}

func textIn(of operand, literals []value) (predicate, error) {
	if !sorted(literals, func(a, b value) int { return strings.Compare(a.text, b.text) }) {
		return nil, errSorted
	}
	subject := of.text
	if len(literals) == 1 {
		literal := literals[0].text
		return func(v Values) (bool, Failure) {
			s, failure := subject(v)
			return s == literal, failure
		}, nil
	}
	texts := make([]string, len(literals))
	for i, literal := range literals {
		texts[i] = literal.text
	}
	if field, name := of.field, of.name; field != noField && len(texts) <= smallSet {
		return func(v Values) (bool, Failure) { return slices.Contains(texts, v.Text(field, name)), 0 }, nil
	}
	if len(texts) <= smallSet {
		return func(v Values) (bool, Failure) {
			s, failure := subject(v)
			return slices.Contains(texts, s), failure
		}, nil
	}
	set := make(map[string]struct{}, len(texts))
	for _, each := range texts {
		set[each] = struct{}{}
	}
	return func(v Values) (bool, Failure) {
		s, failure := subject(v)
		_, has := set[s]
		return has, failure
	}, nil
}

func numberIn(subject number, literals []value) (predicate, error) {
	numbers := make([]int64, len(literals))
	for i, literal := range literals {
		numbers[i] = literal.number
	}
	if !sorted(numbers, cmp.Compare[int64]) {
		return nil, errSorted
	}
	if len(numbers) == 1 {
		literal := numbers[0]
		return func(v Values) (bool, Failure) {
			n, failure := subject(v)
			return n == literal, failure
		}, nil
	}
	return func(v Values) (bool, Failure) {
		n, failure := subject(v)
		_, has := slices.BinarySearch(numbers, n)
		return has, failure
	}, nil
}

func truthIn(subject predicate, literals []value) (predicate, error) {
	if len(literals) == 1 {
		literal := literals[0].number != 0
		return func(v Values) (bool, Failure) {
			truth, failure := subject(v)
			return truth == literal, failure
		}, nil
	}
	if len(literals) != 2 || literals[0].number != 0 || literals[1].number != 1 {
		return nil, errSorted
	}
	return func(v Values) (bool, Failure) {
		_, failure := subject(v)
		return true, failure
	}, nil
}

// addressIn takes a field: no function makes an address.
func addressIn(field Field, literals []value) (predicate, error) {
	ranges := make([]netip.Prefix, len(literals))
	for i, literal := range literals {
		prefix, err := netip.ParsePrefix(literal.text)
		// The canonical text is the only one.
		if err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6() || prefix.String() != literal.text {
			return nil, errType
		}
		ranges[i] = prefix
	}
	if !sorted(ranges, compareRanges) {
		return nil, errSorted
	}
	if len(ranges) == 1 {
		only := ranges[0]
		return func(v Values) (bool, Failure) { return only.Contains(v.Address(field)), 0 }, nil
	}
	if len(ranges) <= smallSet {
		return func(v Values) (bool, Failure) {
			address := v.Address(field)
			for _, each := range ranges {
				if each.Contains(address) {
					return true, 0
				}
			}
			return false, 0
		}, nil
	}
	set := new(bart.Lite)
	for _, each := range ranges {
		set.Insert(each)
	}
	return func(v Values) (bool, Failure) { return set.Contains(v.Address(field)), 0 }, nil
}

// compareRanges puts IPv4 first, then goes by address, then puts the larger range first, as the console does.
func compareRanges(a, b netip.Prefix) int {
	if a.Addr().Is4() != b.Addr().Is4() {
		return a.Addr().BitLen() - b.Addr().BitLen()
	}
	if byAddress := a.Addr().Compare(b.Addr()); byAddress != 0 {
		return byAddress
	}
	return a.Bits() - b.Bits()
}

func ordered(op configOp, subject number, literal int64) predicate {
	switch op {
	case opLt:
		return func(v Values) (bool, Failure) {
			n, failure := subject(v)
			return n < literal, failure
		}
	case opLe:
		return func(v Values) (bool, Failure) {
			n, failure := subject(v)
			return n <= literal, failure
		}
	case opGt:
		return func(v Values) (bool, Failure) {
			n, failure := subject(v)
			return n > literal, failure
		}
	}
	return func(v Values) (bool, Failure) {
		n, failure := subject(v)
		return n >= literal, failure
	}
}

// ofStrings makes the comparisons that only strings have.
func ofStrings(op configOp, subject text, literal string) (predicate, error) {
	var holds func(string) (bool, Failure)
	switch op {
	case opContains:
		holds = func(s string) (bool, Failure) { return strings.Contains(s, literal), 0 }
	case opMatches:
		p, err := patternOf(literal)
		if err != nil {
			return nil, err
		}
		holds = p.matches
	case opWildcard, opStrictWildcard:
		w, err := parseWildcard(literal, op == opStrictWildcard)
		if err != nil {
			return nil, err
		}
		holds = func(s string) (bool, Failure) {
			var found stars
			return w.match(s, &found), 0
		}
	default:
		return nil, errType
	}
	return func(v Values) (bool, Failure) {
		s, failure := subject(v)
		if failure != 0 {
			return false, failure
		}
		return holds(s)
	}, nil
}
