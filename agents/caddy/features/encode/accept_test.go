package encode

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
)

// chosen is what the lines of Accept-Encoding get, where the site has every coding, in an order of preference.
func chosen(order []exchange.Coding, lines ...string) string {
	var list choices
	for _, c := range order {
		list.coding[list.n] = c
		list.n++
	}
	list.welcome(readAccepted(lines))
	var found []string
	for _, c := range list.all() {
		found = append(found, names[c][0])
	}
	return strings.Join(found, " ")
}

func TestNegotiation(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		// Who does not say that it decodes gets the answer as it is.
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"identity"}, ""},
		{[]string{"deflate, compress"}, ""},
		// Equal weights: the edge's order.
		{[]string{"gzip, deflate, br, zstd"}, "zstd br gzip"},
		{[]string{"gzip", "br"}, "br gzip"},
		{[]string{"GZIP , Br"}, "br gzip"},
		// Weights.
		{[]string{"gzip;q=1, br;q=0.5, zstd;q=0.1"}, "gzip br zstd"},
		{[]string{"gzip; q=0.001, br ;\tQ=0.01"}, "br gzip"},
		{[]string{"gzip;q=1.000, br;q=0.999"}, "gzip br"},
		{[]string{"gzip;q=0."}, ""},
		{[]string{"gzip;q=1."}, "gzip"},
		// 0 refuses.
		{[]string{"gzip;q=0"}, ""},
		{[]string{"gzip;q=0.000, *"}, "zstd br"},
		{[]string{"*;q=0"}, ""},
		{[]string{"gzip, *;q=0"}, "gzip"},
		// What is not listed is "*".
		{[]string{"*"}, "zstd br gzip"},
		{[]string{"*;q=0.5, gzip"}, "gzip zstd br"},
		{[]string{"br;q=0.1, *;q=0.2"}, "zstd gzip br"},
		{[]string{"x-gzip"}, "gzip"},
		{[]string{"x-gzip;q=0, gzip"}, ""},
		// Of duplicates the lowest.
		{[]string{"gzip, gzip;q=0"}, ""},
		{[]string{"gzip;q=0.2, br;q=0.5, gzip;q=0.9"}, "br gzip"},
		{[]string{"*, *;q=0"}, ""},
		// Malformed elements say nothing.
		{[]string{"gzip;q=2, br"}, "br"},
		{[]string{"gzip;q=1.001"}, ""},
		{[]string{"gzip;q=-1"}, ""},
		{[]string{"gzip;q=0.1234"}, ""},
		{[]string{"gzip;q=.5"}, ""},
		{[]string{"gzip;q"}, ""},
		{[]string{"gzip;q="}, ""},
		{[]string{"gzip;"}, ""},
		{[]string{"gzip;q = 1"}, ""},
		{[]string{"gzip;q=1;x=y"}, ""},
		{[]string{"gzip;level=9"}, ""},
		{[]string{";q=1,,gzip,"}, "gzip"},
		{[]string{"gzip br"}, ""},
		{[]string{"gzip;q=0x1"}, ""},
		// As it is, where the client likes that better.
		{[]string{"identity, gzip;q=0.5"}, ""},
		{[]string{"identity;q=0.5, gzip"}, "gzip"},
		{[]string{"identity;q=0.5, gzip;q=0.5"}, "gzip"},
		{[]string{"identity;q=0, gzip;q=0.5"}, "gzip"},
		{[]string{"identity;q=0"}, ""},
	} {
		if got := chosen(usualOrder, c.lines...); got != c.want {
			t.Errorf("%q: %q, not %q", c.lines, got, c.want)
		}
	}
	// Rules say what comes first among equals, and the client what comes first at all.
	order := []exchange.Coding{exchange.Gzip, exchange.Zstd}
	if got := chosen(order, "zstd, br, gzip"); got != "gzip zstd" {
		t.Errorf("in the order of a rule: %q", got)
	}
	if got := chosen(order, "zstd, gzip;q=0.9"); got != "zstd gzip" {
		t.Errorf("what the client prefers: %q", got)
	}
}

func TestReadingWhatIsAcceptedAllocatesNothing(t *testing.T) {
	lines := []string{"gzip, deflate, br;q=0.8, zstd, *;q=0.1"}
	if n := testing.AllocsPerRun(100, func() { _ = readAccepted(lines) }); n != 0 {
		t.Errorf("%v", n)
	}
}

// The grammar of RFC 9110, once more and slower.
var elementGrammar = regexp.MustCompile(`^[ \t]*([^ \t;][^;]*?|)[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$`)

func FuzzAccepted(f *testing.F) {
	for _, seed := range []string{"gzip, br;q=0.5, *;q=0", "identity;q=1.000,zstd ;q=0.001", ";;q,=,gzip;q=2", "x-gzip;q=1,gzip;q=0.3", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") {
			return
		}
		want := map[string]int16{}
		for _, element := range strings.Split(text, ",") {
			parts := elementGrammar.FindStringSubmatch(element)
			if parts == nil {
				continue
			}
			name, weight := strings.ToLower(parts[1]), int16(fullWeight)
			if name == "x-gzip" {
				name = "gzip"
			}
			if parts[2] != "" {
				value, err := strconv.ParseFloat(strings.TrimSuffix(parts[2], "."), 64)
				if err != nil {
					t.Fatal(err)
				}
				weight = int16(value*fullWeight + 0.5)
			}
			if before, listed := want[name]; !listed || weight < before {
				want[name] = weight
			}
		}
		a := readAccepted([]string{text})
		for name, got := range map[string]int16{
			"gzip": a.coding[exchange.Gzip], "br": a.coding[exchange.Brotli], "zstd": a.coding[exchange.Zstd], "identity": a.identity, "*": a.any,
		} {
			expected, listed := want[name]
			if !listed {
				expected = unlisted
			}
			if got != expected {
				t.Errorf("%q: %s is %d, not %d", text, name, got, expected)
			}
		}
	})
}
