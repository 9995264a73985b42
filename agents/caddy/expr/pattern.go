package expr

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

const (
	// Instructions of one pattern: more are not compiled, and every evaluation fails.
	maxProgram = 8192
	// Instructions of all patterns in the process together; each takes some 50 bytes.
	maxPrograms = 1 << 21
	// Instructions of a pattern times bytes of a subject: some tenths of a second.
	maxWork = 1 << 24
)

// pattern is a regular expression, of which the process holds one for each source as long as somebody has it.
type pattern struct {
	checkedPattern
	source string
	// Serialises compiling.
	compiling sync.Mutex
	engine    atomic.Pointer[engine]
	// Whether its instructions count among those of the process; outlives the pattern.
	reserved *atomic.Bool
}

var (
	patternsLock sync.Mutex
	patterns     = map[string]weak.Pointer[pattern]{}
	// Instructions of all patterns that are compiled.
	programs atomic.Int64
)

// patternOf checks a pattern and compiles it, or finds the one that is there. Where all patterns together are too large it
// is compiled later, when there is room.
func patternOf(source string) (*pattern, error) {
	checked, err := checkRegex(source)
	if err != nil {
		return nil, err
	}
	p := intern(source, checked)
	p.ready()
	return p, nil
}

func intern(source string, checked checkedPattern) *pattern {
	patternsLock.Lock()
	defer patternsLock.Unlock()
	if p := patterns[source].Value(); p != nil {
		return p
	}
	p := &pattern{checkedPattern: checked, source: source, reserved: new(atomic.Bool)}
	patterns[source] = weak.Make(p)
	reserved := p.reserved
	runtime.AddCleanup(p, func(source string) {
		patternsLock.Lock()
		defer patternsLock.Unlock()
		// A newer one may have its place.
		if patterns[source].Value() == nil {
			delete(patterns, source)
		}
		if reserved.Load() {
			programs.Add(-int64(checked.size))
		}
	}, source)
	return p
}

// ready is what runs the pattern; nil while there is no room for it.
func (p *pattern) ready() *engine {
	if e := p.engine.Load(); e != nil {
		return e
	}
	size := int64(p.size)
	if size > maxProgram || programs.Load()+size > maxPrograms {
		return nil
	}
	p.compiling.Lock()
	defer p.compiling.Unlock()
	if e := p.engine.Load(); e != nil {
		return e
	}
	if programs.Add(size) > maxPrograms {
		programs.Add(-size)
		return nil
	}
	e, err := newEngine(p.source)
	if err != nil {
		programs.Add(-size)
		return nil
	}
	p.reserved.Store(true)
	p.engine.Store(&e)
	return &e
}

// affordable is what may run the pattern over a subject of so many bytes; nil when that would cost too much.
func (p *pattern) affordable(subject int) *engine {
	if p.size*(subject+1) > maxWork {
		return nil
	}
	return p.ready()
}

func (p *pattern) matches(subject string) (bool, Failure) {
	e := p.affordable(len(subject))
	if e == nil {
		return false, PatternBudget
	}
	return e.matches(subject), 0
}

// replace puts the replacement in the place of the first match.
func (p *pattern) replace(subject string, with replacement) (string, Failure) {
	e := p.affordable(len(subject))
	if e == nil {
		return "", PatternBudget
	}
	at := e.find(subject)
	if at == nil {
		return subject, 0
	}
	return with.inPlaceOf(subject, at)
}

// inPlaceOf is a subject with the replacement of a match, whose groups are at.
func (r replacement) inPlaceOf(subject string, at []int) (string, Failure) {
	return r.filled(subject[:at[0]], func(group int) string {
		if at[2*group] < 0 || at[2*group+1] < 0 {
			return ""
		}
		return subject[at[2*group]:at[2*group+1]]
	}, subject[at[1]:])
}
