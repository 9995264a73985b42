package waf

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// words finds any of many words in a value, whatever their case: the operators @pm and @pmFromFile. It is the tree of all
// words with a way back from each place to the longest ending that is in the tree, too, in a tenth of the memory that the
// engine's own takes. Places are numbered by their depth, so that what comes after one has numbers in a row. It captures
// nothing: rules of requests use none of it.
type words struct {
	// The byte that leads to a place, lower case; where the next ones begin, and the way back.
	label []byte
	next  []uint32
	back  []uint32
	// The place ends a word, or one of its endings does.
	ends []bool
	// Where each byte leads from the root; 0: nowhere.
	first [256]uint32
}

func newWords(options plugintypes.OperatorOptions) (plugintypes.Operator, error) {
	return wordsOnce(options.Memoizer, options.Arguments, strings.Split(options.Arguments, " "))
}

func newWordsOfFile(options plugintypes.OperatorOptions) (plugintypes.Operator, error) {
	var content []byte
	err := fmt.Errorf("no folder of %s", options.Arguments)
	for _, folder := range options.Path {
		if content, err = fs.ReadFile(options.Root, path.Join(folder, options.Arguments)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return wordsOnce(options.Memoizer, options.Arguments, list)
}

func wordsOnce(memoizer plugintypes.Memoizer, key string, list []string) (plugintypes.Operator, error) {
	build := func() (any, error) { return buildWords(list), nil }
	if memoizer == nil {
		return buildWords(list), nil
	}
	made, err := memoizer.Do("svc words "+key, build)
	if err != nil {
		return nil, err
	}
	return made.(*words), nil
}

func buildWords(list []string) *words {
	sorted := make([]string, len(list))
	for i, w := range list {
		sorted[i] = lowerASCII(w)
	}
	slices.Sort(sorted)
	// A place is what words begin with that stand in a row in the sorted list.
	type place struct{ from, to, depth, parent int }
	places := []place{{0, len(sorted), 0, 0}}
	w := &words{label: []byte{0}}
	for at := 0; at < len(places); at++ {
		p := places[at]
		w.next, w.ends, w.back = append(w.next, uint32(len(places))), append(w.ends, false), append(w.back, 0)
		for i := p.from; i < p.to; {
			if len(sorted[i]) == p.depth {
				w.ends[at] = true
				i++
				continue
			}
			end, c := i, sorted[i][p.depth]
			for end < p.to && len(sorted[end]) > p.depth && sorted[end][p.depth] == c {
				end++
			}
			if at == 0 {
				w.first[c] = uint32(len(places))
			}
			w.label = append(w.label, c)
			places = append(places, place{i, end, p.depth + 1, at})
			i = end
		}
	}
	w.next = append(w.next, uint32(len(places)))
	for at := 1; at < len(places); at++ {
		if parent := places[at].parent; parent > 0 {
			w.back[at] = w.step(w.back[parent], w.label[at])
		}
		w.ends[at] = w.ends[at] || w.ends[w.back[at]]
	}
	w.label, w.next, w.back, w.ends = slices.Clip(w.label), slices.Clip(w.next), slices.Clip(w.back), slices.Clip(w.ends)
	return w
}

// step is the place after a byte.
func (w *words) step(at uint32, c byte) uint32 {
	for at > 0 {
		from := w.next[at]
		if i := bytes.IndexByte(w.label[from:w.next[at+1]], c); i >= 0 {
			return from + uint32(i)
		}
		at = w.back[at]
	}
	return w.first[c]
}

// Evaluate reports whether a word is in a value.
func (w *words) Evaluate(_ plugintypes.TransactionState, value string) bool {
	at := uint32(0)
	if w.ends[at] {
		return true
	}
	for i := range len(value) {
		c := value[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if at = w.step(at, c); w.ends[at] {
			return true
		}
	}
	return false
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r | 0x20
		}
		return r
	}, text)
}
