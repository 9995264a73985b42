package exchange

import "sync"

// Count is the name of something that is counted for a site and minute beside its requests: "blocked.ban",
// "challenge.shown.js". Make it with NewCount.
type Count uint32

// maxCounts is how many names a process knows; what comes after counts as OtherCount.
const maxCounts = 50_000

// OtherCount stands for names that there is no room for.
const OtherCount Count = 0

var countNames = struct {
	sync.RWMutex
	names []string
	known map[string]Count
}{names: []string{"other"}, known: map[string]Count{"other": OtherCount}}

// maxCountName is the longest name that is counted.
const maxCountName = 64

// NewCount returns the count of a name, the same one for the same name. Names are of letters, digits and "_.:-"; what is
// longer than 64 of them, or beyond the room for names, is OtherCount. Call it while the program starts or when
// something is compiled, not for each request: it takes a lock.
func NewCount(name string) Count {
	c := &countNames
	c.Lock()
	defer c.Unlock()
	if count, ok := c.known[name]; ok {
		return count
	}
	if len(c.names) >= maxCounts || len(name) > maxCountName {
		return OtherCount
	}
	count := Count(len(c.names))
	c.names, c.known[name] = append(c.names, name), count
	return count
}

// Name is the name of the count.
func (c Count) Name() string {
	countNames.RLock()
	defer countNames.RUnlock()
	if int(c) < len(countNames.names) {
		return countNames.names[c]
	}
	return countNames.names[OtherCount]
}

// maxMarks is how much of one exchange is counted by name; the rest counts as OtherCount.
const maxMarks = 64

// Mark counts something of the exchange, for its site and the minute.
func (x *Exchange) Mark(c Count) {
	if len(x.marks) < maxMarks {
		x.marks = append(x.marks, c)
	} else {
		x.marks[maxMarks-1] = OtherCount
	}
}

// TakeMarks returns what was marked since it was asked last. The slice is the exchange's own: it is good until the next
// mark.
func (x *Exchange) TakeMarks() []Count {
	marks := x.marks
	x.marks = x.marks[:0]
	return marks
}
