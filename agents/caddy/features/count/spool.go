package count

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	suffix = ".counts"
	// What sealed segments may take on the disk, and in memory where the disk takes none; beyond it the oldest are given
	// up.
	maxSealedBytes = 64 << 20
	maxMemoryBytes = 16 << 20
	maxSealed      = 4096
)

// spool keeps segments: the one that is counted in, and those that are sealed and wait for the agent. It is not for
// several goroutines.
type spool struct {
	disk   disk
	folder string
	clock  *clock
	// tell hears of what goes wrong, in words.
	tell func(doing string, err error)
	// Whether the folder failed last, so that it is said once.
	failing bool

	current *segment
	// nil where the current segment is in memory alone.
	mapped   *mapped
	path     string
	openedAt time.Time
	waiting  []*waitingSegment
	// Of them, at most; tests keep fewer.
	maxWaiting int
	last       uint64
	// Gaps that no segment had room for.
	gaps []gap
}

// waitingSegment is one that is sealed.
type waitingSegment struct {
	sequence uint64
	bytes    int
	// In memory, where it could not be written.
	data []byte
}

// openSpool takes over what a former process left in the folder and begins a segment. now is the machine's clock.
func openSpool(disk disk, folder string, now func() time.Time, tell func(doing string, err error)) *spool {
	s := &spool{disk: disk, folder: folder, tell: tell, clock: newClock(now, 0), maxWaiting: maxSealed}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		s.problem("making the folder for counts", err)
	}
	s.takeOver()
	// From the time on: beyond what a former process gave out from memory alone, and after a folder was lost.
	s.last = max(s.last, uint64(max(s.clock.now().UnixMilli(), 0)))
	s.open()
	return s
}

// problem says once that the folder fails.
func (s *spool) problem(doing string, err error) {
	if err != nil && !s.failing {
		s.failing = true
		s.tell(doing, err)
	}
}

func (s *spool) pathOf(sequence uint64) string {
	return filepath.Join(s.folder, fmt.Sprintf("%020d%s", sequence, suffix))
}

// sequences are those of the files in the folder, rising. What else lies there is left alone but for what was being
// written.
func (s *spool) sequences() []uint64 {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		s.problem("reading the folder for counts", err)
		return nil
	}
	var found []uint64
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), suffix+".tmp") {
			_ = os.Remove(filepath.Join(s.folder, entry.Name()))
		}
		digits, is := strings.CutSuffix(entry.Name(), suffix)
		if sequence, err := strconv.ParseUint(digits, 10, 63); is && err == nil && sequence > 0 && s.pathOf(sequence) == filepath.Join(s.folder, entry.Name()) {
			found = append(found, sequence)
		}
	}
	slices.Sort(found)
	return found
}

// takeOver seals what a former process was counting in, and notes what it took with it.
func (s *spool) takeOver() {
	found := s.sequences()
	if len(found) == 0 {
		return
	}
	type left struct {
		sequence uint64
		data     []byte
		c        *contents
		err      error
	}
	var files []left
	for _, sequence := range found {
		data, err := readFile(s.pathOf(sequence))
		f := left{sequence: sequence, data: data, err: err}
		if err == nil {
			f.c, f.err = readSegment(data)
		}
		files = append(files, f)
		if f.c != nil && f.c.state != running {
			// Sealed ones are read again when it is their turn.
			f.data, f.c.minutes = nil, nil
			files[len(files)-1].data = nil
		}
	}
	s.last = found[len(found)-1]
	newest := files[len(files)-1]
	if newest.c != nil {
		s.clock.set(newest.c.offset)
	}
	now := s.clock.now()
	until := func(from time.Time) gap { return gap{from.Unix(), max(now.Unix()+1, from.Unix())} }
	for i, f := range files {
		switch {
		case f.c == nil:
			// Nothing in it says of when it is: from the one before to now, or all that may have been.
			s.problem("reading counts of "+strconv.FormatUint(f.sequence, 10), f.err)
			from := modified(s.pathOf(f.sequence))
			if i > 0 && files[i-1].c != nil {
				from = files[i-1].c.flushed
			}
			s.gaps = append(s.gaps, until(from))
			_ = os.Remove(s.pathOf(f.sequence))
		case f.err != nil:
			s.problem("reading counts of "+strconv.FormatUint(f.sequence, 10), f.err)
			s.gaps = append(s.gaps, until(f.c.opened))
			_ = os.Remove(s.pathOf(f.sequence))
		case f.c.state == running:
			g := until(f.c.flushed)
			if f.c.damaged {
				g = until(f.c.opened)
			}
			s.sealLeft(f.sequence, f.data, f.c, g)
		default:
			info, err := os.Stat(s.pathOf(f.sequence))
			if err == nil {
				s.waiting = append(s.waiting, &waitingSegment{sequence: f.sequence, bytes: int(info.Size())})
			}
			if i == len(files)-1 && f.c.state != ended {
				s.gaps = append(s.gaps, until(f.c.flushed))
			}
		}
	}
}

// sealLeft seals a segment that a killed process was counting in. Without rows its gap is all that is left of it.
func (s *spool) sealLeft(sequence uint64, data []byte, c *contents, g gap) {
	if len(c.minutes) == 0 {
		s.gaps = append(append(s.gaps, c.gaps...), g)
		// Gone once the next one, which has the gaps, is there.
		s.waiting = append(s.waiting, &waitingSegment{sequence: sequence})
		return
	}
	kept := append(make([]byte, 0, c.used+2*recordBytes), data[:c.used]...)
	old := &segment{data: kept[:cap(kept)], used: c.used}
	old.addGap(g)
	old.publish()
	old.seal(sealed)
	w := &waitingSegment{sequence: sequence, bytes: old.used}
	if err := replaceFile(s.disk, s.pathOf(sequence), old.data[:old.used]); err != nil {
		s.problem("sealing counts", err)
		w.data = old.data[:old.used]
	}
	s.waiting = append(s.waiting, w)
}

// open begins a segment, in memory where the folder takes none.
func (s *spool) open() {
	now := s.clock.now()
	s.last++
	s.path, s.mapped, s.openedAt = s.pathOf(s.last), nil, now
	data := []byte(nil)
	m, err := makeMapped(s.disk, s.path, segmentBytes)
	if err != nil {
		s.problem("making a file for counts", err)
		data = make([]byte, segmentBytes)
	} else {
		s.failing = false
		s.mapped, data = m, m.data
	}
	s.current = newSegment(data, s.last, now, s.clock.offset())
	for len(s.gaps) > 0 && s.current.addGap(s.gaps[0]) {
		s.gaps = s.gaps[1:]
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waitingSegment) bool {
		if w.bytes > 0 {
			return false
		}
		_ = os.Remove(s.pathOf(w.sequence))
		return true
	})
	s.bound()
}

// seal ends the current segment, which then waits for the agent where it holds anything.
func (s *spool) seal(state segmentState) {
	current := s.current
	w := &waitingSegment{sequence: s.last, bytes: current.used}
	current.seal(state)
	switch {
	case s.mapped == nil:
		w.data = slices.Clone(current.data[:current.used])
		// There may be room again.
		if err := replaceFile(s.disk, s.path, w.data); err == nil {
			w.data = nil
		}
	default:
		if err := s.mapped.close(current.used); err != nil {
			s.problem("closing a file of counts", err)
		}
	}
	s.current, s.mapped = nil, nil
	s.waiting = append(s.waiting, w)
}

// rotate seals the current segment, which has rows, and begins another.
func (s *spool) rotate() {
	s.seal(sealed)
	s.open()
}

// bound gives up the oldest segments where all take too much. The first one is with the agent, so it stays.
func (s *spool) bound() {
	disk, memory := 0, 0
	for _, w := range s.waiting {
		if w.data == nil {
			disk += w.bytes
		} else {
			memory += w.bytes
		}
	}
	for len(s.waiting) > 2 && (disk > maxSealedBytes || memory > maxMemoryBytes || len(s.waiting) > s.maxWaiting) {
		at := slices.IndexFunc(s.waiting[1:], func(w *waitingSegment) bool { return memory <= maxMemoryBytes || w.data != nil }) + 1
		if at == 0 {
			return
		}
		w := s.waiting[at]
		if w.data == nil {
			disk -= w.bytes
		} else {
			memory -= w.bytes
		}
		s.noteGaps(s.lost(w))
		s.drop(at)
		s.tell("keeping counts", errFull)
	}
}

var errFull = errors.New("the agent fetched no counts for too long, so the oldest were deleted")

// lost says what is missing once a segment is given up.
func (s *spool) lost(w *waitingSegment) []gap {
	data := w.data
	if data == nil {
		data, _ = readFile(s.pathOf(w.sequence))
	}
	c, err := readSegment(data)
	if err != nil {
		return []gap{s.around(w, c)}
	}
	gaps := c.gaps
	for _, minute := range c.minutes {
		gaps = append(gaps, gap{minute.GetMinute(), minute.GetMinute() + 60})
	}
	return merged(gaps)
}

// around is the time a segment that cannot be read may be of.
func (s *spool) around(w *waitingSegment, c *contents) gap {
	now := s.clock.now().Unix()
	if c != nil && c.opened.Unix() <= now {
		return gap{c.opened.Unix(), max(min(c.flushed.Unix()+1, now), c.opened.Unix())}
	}
	return gap{min(modified(s.pathOf(w.sequence)).Unix(), now), now}
}

// merged joins gaps that touch.
func merged(gaps []gap) []gap {
	slices.SortFunc(gaps, func(a, b gap) int { return int(min(max(a.from-b.from, -1), 1)) })
	var all []gap
	for _, g := range gaps {
		if n := len(all); n > 0 && g.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, g.to)
		} else {
			all = append(all, g)
		}
	}
	return all
}

// noteGaps tells gaps with the next batch that is made.
func (s *spool) noteGaps(gaps []gap) {
	for _, g := range gaps {
		if s.current == nil || !s.current.addGap(g) {
			s.gaps = merged(append(s.gaps, g))
		}
	}
}

// drop forgets a segment.
func (s *spool) drop(at int) {
	w := s.waiting[at]
	s.waiting = slices.Delete(s.waiting, at, at+1)
	if err := os.Remove(s.pathOf(w.sequence)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.problem("removing counts", err)
	}
}

// acknowledge forgets what the agent has, up to a sequence that was handed out.
func (s *spool) acknowledge(sequence uint64) {
	for len(s.waiting) > 0 && s.waiting[0].sequence <= sequence && sequence < s.last {
		s.drop(0)
	}
}

// next reads the oldest segment that waits; nil when there is none. What cannot be read becomes a gap.
func (s *spool) next() *contents {
	for len(s.waiting) > 0 {
		w := s.waiting[0]
		if w.bytes == 0 {
			s.drop(0)
			continue
		}
		data := w.data
		var err error
		if data == nil {
			data, err = readFile(s.pathOf(w.sequence))
		}
		var c *contents
		if err == nil {
			c, err = readSegment(data)
		}
		if err == nil && len(c.minutes) > 0 {
			return c
		}
		if err != nil {
			s.problem("reading counts", err)
			s.noteGaps([]gap{s.around(w, c)})
		} else {
			s.noteGaps(c.gaps)
		}
		s.drop(0)
	}
	return nil
}

// guarded does something with memory that is a file. Where the disk fails below it, the memory is given up for ordinary
// one, and the time since the segment began becomes a gap: nothing of it can be relied on.
func (s *spool) guarded(do func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, fault := p.(interface{ Addr() uintptr }); !fault || s.mapped == nil {
			panic(p)
		}
		opened := s.openedAt
		s.problem("counting in a file", fmt.Errorf("%v", p))
		_ = s.mapped.give()
		s.mapped, s.current = nil, nil
		s.gaps = append(s.gaps, gap{opened.Unix(), s.clock.now().Unix() + 1})
		_ = os.Remove(s.path)
		s.open()
	}()
	do()
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Unix(0, 0)
	}
	return info.ModTime()
}

// readFile reads a file that is no larger than a segment may be.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > segmentBytes+gapReserve || !info.Mode().IsRegular() {
		return nil, errNoSegment
	}
	return os.ReadFile(path)
}
