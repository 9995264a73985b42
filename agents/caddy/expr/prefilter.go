package expr

import (
	"regexp/syntax"
	"strings"
)

// Looking for more texts than this costs as much as it spares.
const maxNeeded = 16

// needed are texts of which every match has at least one in it; none are known where it is empty. Looking for them spares
// most values the pattern, at a hundredth of its time.
type needed []string

// neededBy looks at a pattern that was checked.
func neededBy(source string) needed {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil
	}
	return neededByNode(parsed)
}

func neededByNode(re *syntax.Regexp) needed {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return needed{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return neededByNode(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return neededByNode(re.Sub[0])
		}
	case syntax.OpConcat:
		var best needed
		for _, sub := range re.Sub {
			if one := neededByNode(sub); one.shortest() > best.shortest() {
				best = one
			}
		}
		return best
	case syntax.OpAlternate:
		var all needed
		for _, sub := range re.Sub {
			one := neededByNode(sub)
			if all = append(all, one...); len(one) == 0 || len(all) > maxNeeded {
				return nil
			}
		}
		return all
	}
	return nil
}

// shortest is the length of the text that says least; 0 for none.
func (n needed) shortest() int {
	if len(n) == 0 {
		return 0
	}
	length := len(n[0])
	for _, each := range n[1:] {
		length = min(length, len(each))
	}
	return length
}

// allow reports whether the subject may match.
func (n needed) allow(subject string) bool {
	for _, each := range n {
		if strings.Contains(subject, each) {
			return true
		}
	}
	return len(n) == 0
}
