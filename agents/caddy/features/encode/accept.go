package encode

import (
	"strings"

	"edge.svc/caddy/exchange"
)

// Weights are in thousandths, as many as RFC 9110 has digits for.
const (
	fullWeight = 1000
	unlisted   = -1
)

// accepted is what an Accept-Encoding field says, as RFC 9110, section 12.5.3 has it: the weight of each coding, or
// unlisted.
type accepted struct {
	coding   [exchange.Gzip + 1]int16
	identity int16
	any      int16
}

// readAccepted reads the lines of the field. Elements that are malformed say nothing; of a coding that is listed twice the
// lowest weight counts. Without the field, and with one that lists nothing, no coding is acceptable: what does not say
// that it can decode may not be able to.
func readAccepted(lines []string) accepted {
	a := accepted{identity: unlisted, any: unlisted}
	for i := range a.coding {
		a.coding[i] = unlisted
	}
	for _, line := range lines {
		for rest, more := line, true; more; {
			var element string
			element, rest, more = strings.Cut(rest, ",")
			a.add(element)
		}
	}
	return a
}

func (a *accepted) add(element string) {
	name, parameter, has := strings.Cut(element, ";")
	weight := int16(fullWeight)
	if has {
		var ok bool
		if weight, ok = readWeight(strings.Trim(parameter, " \t")); !ok {
			return
		}
	}
	of := a.named(strings.Trim(name, " \t"))
	if of != nil && (*of == unlisted || weight < *of) {
		*of = weight
	}
}

// named is where the weight of a coding is kept, nil for one that is not known here.
func (a *accepted) named(name string) *int16 {
	switch {
	case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"):
		return &a.coding[exchange.Gzip]
	case strings.EqualFold(name, "br"):
		return &a.coding[exchange.Brotli]
	case strings.EqualFold(name, "zstd"):
		return &a.coding[exchange.Zstd]
	case strings.EqualFold(name, "identity"):
		return &a.identity
	case name == "*":
		return &a.any
	}
	return nil
}

// readWeight reads "q=" and a number from 0 to 1 with at most three digits after the point.
func readWeight(text string) (weight int16, ok bool) {
	if len(text) < 3 || text[0]|0x20 != 'q' || text[1] != '=' {
		return 0, false
	}
	text = text[2:]
	if text[0] != '0' && text[0] != '1' || len(text) > 1 && text[1] != '.' || len(text) > 5 {
		return 0, false
	}
	weight = int16(text[0]-'0') * fullWeight
	for i, worth := 2, int16(100); i < len(text); i, worth = i+1, worth/10 {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		weight += int16(text[i]-'0') * worth
	}
	return weight, weight <= fullWeight
}

// weight is how welcome a coding is: 0 for one that is refused, and for one that is less welcome than the answer as it is.
func (a *accepted) weight(c exchange.Coding) int16 {
	w := a.coding[c]
	if w == unlisted {
		w = a.any
	}
	if w < a.identity {
		return 0
	}
	return max(w, 0)
}
