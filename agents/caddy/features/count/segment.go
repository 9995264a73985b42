package count

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// A segment holds the figures of sites by minute, in a file or in memory: a header, and records of 16 bytes, some of
// them followed by text that is filled up to 16. All numbers are little-endian. While it is counted in, the figures in it
// change in place, each with one store, and records are added behind the others; `used` says where they end, and moves
// once they are whole. A process that is killed at any point leaves it readable.
//
//	row      kind 1, length of the text, number of the row; start of the minute; the site's id
//	name     kind 2, length of the text, number of the name; 0; the name
//	figure   kind 3, field, number of the row; value
//	rule     kind 5, length of the text, number of the rule; 1 for one of the platform; its id
//	gap      kind 4; from; 16 bytes more: to, 0. Unix seconds
//	top      kind 6, length of the text and list, number of the row; requests; 8 bytes more and the text: bytes, key
const (
	segmentMagic = "svccnt1\n"
	headerBytes  = 64
	recordBytes  = 16

	atSequence = 8
	atState    = 16
	atUsed     = 24
	// Unix milliseconds by the console's clock.
	atFlushed = 32
	atOpened  = 40
	// The console's clock minus this machine's, milliseconds.
	atOffset   = 48
	atChecksum = 56

	// What counts in one segment, and so in one batch, at most.
	segmentBytes = 4 << 20
	maxRows      = 20_000
	// Named figures of one row; the others count together.
	maxRowNames = 200
	maxText     = 255
	// Room kept for gaps that become known late.
	gapReserve = 1 << 10
)

type recordKind uint8

const (
	kindRow    recordKind = 1
	kindName   recordKind = 2
	kindFigure recordKind = 3
	kindGap    recordKind = 4
	kindRule   recordKind = 5
	kindTop    recordKind = 6
)

// segmentState says how a segment ended.
type segmentState uint64

const (
	running segmentState = 0
	sealed  segmentState = 1
	// ended is sealed by a process that stopped in order.
	ended segmentState = 2
)

var (
	errNoSegment = errors.New("the file does not hold counts")
	errDamaged   = errors.New("the checksum does not match")
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	order        = binary.LittleEndian
)

type rowKey struct {
	siteID string
	minute int64
}

type row struct {
	number uint32
	names  int
	fields []placedFigure
	// How many more rules it takes.
	roomLogged, roomWAF, roomOthers uint8
}

type placedFigure struct {
	field field
	at    uint32
}

// segment is one that is counted in.
type segment struct {
	data []byte
	rows map[rowKey]*row
	// The row that was asked for last: the figures of a site come one after the other.
	lastKey rowKey
	last    *row
	// Numbers of names in this segment, by their fields in memory.
	names map[field]uint32
	rules map[ruleKey]uint32
	used  int
}

// newSegment makes a segment of memory that holds zeros.
func newSegment(data []byte, sequence uint64, now time.Time, offset time.Duration) *segment {
	s := &segment{data: data, rows: map[rowKey]*row{}, names: map[field]uint32{}, rules: map[ruleKey]uint32{}, used: headerBytes}
	copy(data, segmentMagic)
	order.PutUint64(data[atSequence:], sequence)
	order.PutUint64(data[atOpened:], uint64(now.UnixMilli()))
	s.flushed(now, offset)
	s.publish()
	return s
}

func (s *segment) publish() { order.PutUint64(s.data[atUsed:], uint64(s.used)) }

// flushed notes up to when everything was counted.
func (s *segment) flushed(now time.Time, offset time.Duration) {
	order.PutUint64(s.data[atOffset:], uint64(offset.Milliseconds()))
	order.PutUint64(s.data[atFlushed:], uint64(now.UnixMilli()))
}

func filled(text int) int { return (text + recordBytes - 1) / recordBytes * recordBytes }

// put writes a record behind the others, and reports false when there is no room.
func (s *segment) put(kind recordKind, extra, number uint32, value uint64, text string, reserve int) bool {
	size := recordBytes + filled(len(text))
	if s.used+size+reserve > len(s.data) {
		return false
	}
	at := s.data[s.used:]
	order.PutUint32(at, uint32(kind)|extra<<8)
	order.PutUint32(at[4:], number)
	order.PutUint64(at[8:], value)
	copy(at[recordBytes:], text)
	s.used += size
	return true
}

// rowOf finds or makes the row of a site and minute; nil when there is no room.
func (s *segment) rowOf(siteID string, minute int64) *row {
	key := rowKey{siteID, minute}
	if s.last != nil && key == s.lastKey {
		return s.last
	}
	if r := s.rows[key]; r != nil {
		s.lastKey, s.last = key, r
		return r
	}
	if len(s.rows) == maxRows || len(siteID) > maxText {
		return nil
	}
	r := &row{number: uint32(len(s.rows)), roomLogged: maxRowHeaviest, roomWAF: maxRowHeaviest, roomOthers: maxRowRules}
	if !s.put(kindRow, uint32(len(siteID)), r.number, uint64(minute), siteID, gapReserve) {
		return nil
	}
	s.publish()
	s.rows[key] = r
	s.lastKey, s.last = key, r
	return r
}

// add counts, and reports false when there is no room. name tells names by their fields in memory.
func (s *segment) add(r *row, f field, n uint64, name func(field) string) bool {
	if at := r.find(f); at > 0 {
		s.increase(at, n)
		return true
	}
	if f.isName() && f != otherName && r.names >= maxRowNames-1 {
		return s.add(r, otherName, n, name)
	}
	stored := f
	if f.isName() {
		number, known := s.names[f]
		if !known {
			text := name(f)
			number = uint32(len(s.names))
			if !s.put(kindName, uint32(min(len(text), maxText)), number, 0, text[:min(len(text), maxText)], gapReserve) {
				return false
			}
			s.publish()
			s.names[f] = number
		}
		stored = fieldName + field(number)
	}
	at := s.used + 8
	if !s.put(kindFigure, uint32(stored), r.number, n, "", gapReserve) {
		return false
	}
	s.publish()
	if f.isName() {
		r.names++
	}
	r.fields = append(r.fields, placedFigure{f, uint32(at)})
	return true
}

func (r *row) find(f field) int {
	for i := range r.fields {
		if r.fields[i].field == f {
			return int(r.fields[i].at)
		}
	}
	return 0
}

func (s *segment) increase(at int, n uint64) {
	order.PutUint64(s.data[at:], order.Uint64(s.data[at:])+n)
}

// A top record has its list behind the length of its text.
const (
	topLengthBits = 12
	maxTopText    = topBytes + maxURL
	topBytes      = 8
)

// addTop adds an entry of a list, and reports false when there is no room.
func (s *segment) addTop(r *row, entry topEntry) bool {
	var text [maxTopText]byte
	order.PutUint64(text[:], entry.bytes)
	length := topBytes + copy(text[topBytes:], entry.key)
	if !s.put(kindTop, uint32(length)|uint32(entry.list)<<topLengthBits, r.number, entry.requests, string(text[:length]), gapReserve) {
		return false
	}
	s.publish()
	return true
}

// readTop adds an entry of a list to a minute, and reports whether it makes sense.
func readTop(m *nodev1.SiteMinute, list nodev1.TopList, requests uint64, text []byte) bool {
	if list <= nodev1.TopList_TOP_LIST_UNSPECIFIED || int(list) > listKinds || len(text) < topBytes {
		return false
	}
	m.Tops = append(m.Tops, &nodev1.TopCount{
		List: list, Key: cleaned(string(text[topBytes:]), maxURL), Requests: requests, BytesSent: order.Uint64(text),
	})
	return true
}

// addGap tells of a time of which something is missing.
func (s *segment) addGap(g gap) bool {
	at := s.used
	if !s.put(kindGap, 0, 0, uint64(g.from), "", recordBytes) {
		return false
	}
	order.PutUint64(s.data[at+recordBytes:], uint64(g.to))
	s.used += recordBytes
	s.publish()
	return true
}

// seal ends the segment: it never changes again.
func (s *segment) seal(state segmentState) {
	// The checksum first: the state is what makes it count.
	order.PutUint64(s.data[atChecksum:], checksum(s.data[:s.used], state))
	order.PutUint64(s.data[atState:], uint64(state))
}

// checksum is that of a segment in a state.
func checksum(data []byte, state segmentState) uint64 {
	var header [atChecksum]byte
	copy(header[:], data)
	order.PutUint64(header[atState:], uint64(state))
	sum := crc32.Update(0, castagnoli, header[:])
	return uint64(crc32.Update(sum, castagnoli, data[headerBytes:]))
}

// gap is a time of which something is missing, Unix seconds.
type gap struct{ from, to int64 }

// contents is what was read of a segment.
type contents struct {
	sequence        uint64
	state           segmentState
	flushed, opened time.Time
	offset          time.Duration
	// Where what is readable ends.
	used    int
	minutes []*nodev1.SiteMinute
	gaps    []gap
	// Something in it cannot be read.
	damaged bool
}

// readSegment reads a segment, as far as it is good. It fails with errNoSegment where not even the header is, and with
// errDamaged, beside the header, where one that was sealed is not what it was.
func readSegment(data []byte) (*contents, error) {
	if len(data) < headerBytes || string(data[:len(segmentMagic)]) != segmentMagic {
		return nil, errNoSegment
	}
	c := &contents{
		sequence: order.Uint64(data[atSequence:]),
		state:    segmentState(order.Uint64(data[atState:])),
		flushed:  milliseconds(data[atFlushed:]),
		opened:   milliseconds(data[atOpened:]),
		offset:   time.Duration(bounded(data[atOffset:])) * time.Millisecond,
		used:     headerBytes,
	}
	used := order.Uint64(data[atUsed:])
	if used < headerBytes || used > uint64(len(data)) || c.state > ended {
		c.damaged = true
		return c, errDamaged
	}
	if c.state != running && order.Uint64(data[atChecksum:]) != checksum(data[:used], c.state) {
		c.damaged = true
		return c, errDamaged
	}
	c.damaged = !c.readRecords(data[:used])
	return c, nil
}

// maxMilliseconds is the largest time, or difference of times, that is believed.
const maxMilliseconds = int64(1) << 45

func bounded(p []byte) int64 {
	return min(max(int64(order.Uint64(p)), -maxMilliseconds), maxMilliseconds)
}

func milliseconds(p []byte) time.Time { return time.UnixMilli(max(bounded(p), 0)) }

// readRecords reports whether it came to the end.
func (c *contents) readRecords(data []byte) bool {
	var names []string
	var rules []ruleKey
	defer func() { tellHeaviest(c.minutes) }()
	for at := headerBytes; at < len(data); {
		if len(data)-at < recordBytes {
			return false
		}
		word, number, value := order.Uint32(data[at:]), order.Uint32(data[at+4:]), order.Uint64(data[at+8:])
		kind, extra := recordKind(word), word>>8
		size := recordBytes
		length, most := extra, uint32(maxText)
		switch kind {
		case kindRow, kindName, kindRule:
			size += filled(int(extra))
		case kindTop:
			length, most = extra&(1<<topLengthBits-1), maxTopText
			size += filled(int(length))
		case kindGap:
			size += recordBytes
			length = 0
		default:
			length = 0
		}
		if length > most || size > len(data)-at {
			return false
		}
		text := data[at+recordBytes : at+size]
		good := false
		switch kind {
		case kindRow:
			if good = int(number) == len(c.minutes) && number < maxRows && value < math.MaxInt64; good {
				c.minutes = append(c.minutes, &nodev1.SiteMinute{SiteId: printable(text[:extra]), Minute: int64(value)})
			}
		case kindName:
			if good = int(number) == len(names); good {
				names = append(names, printable(text[:extra]))
			}
		case kindRule:
			if good = int(number) == len(rules) && value <= platformsRule; good {
				rules = append(rules, ruleKey{value == platformsRule, printable(text[:extra])})
			}
		case kindFigure:
			good = int(number) < len(c.minutes) && readFigure(c.minutes[number], field(extra), value, names, rules)
		case kindTop:
			good = int(number) < len(c.minutes) && readTop(c.minutes[number], nodev1.TopList(extra>>topLengthBits), value, text[:length])
		case kindGap:
			from, to := int64(value), int64(order.Uint64(text))
			if good = from >= 0 && to >= from; good {
				c.gaps = append(c.gaps, gap{from, to})
			}
		}
		if !good {
			return false
		}
		at += size
		c.used = at
	}
	return true
}

// printable is text that a message may hold, whatever a damaged file says.
func printable(text []byte) string {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return "?"
		}
	}
	return string(text)
}

func readFigure(m *nodev1.SiteMinute, f field, value uint64, names []string, rules []ruleKey) bool {
	switch {
	case f == fieldRequests:
		m.Requests += value
	case f == fieldSent:
		m.BytesSent += value
	case f == fieldReceived:
		m.BytesReceived += value
	case f == fieldCacheHits:
		m.CacheHits += value
	case f == fieldCacheMisses:
		m.CacheMisses += value
	case f == fieldCacheHitBytes:
		m.CacheHitBytes += value
	case f.isLatency():
		if m.Latency == nil {
			m.Latency = make([]uint64, exchange.LatencyBuckets)
		}
		m.Latency[f-fieldLatency] += value
	case f.isStatus():
		m.Statuses = append(m.Statuses, &nodev1.StatusCount{Code: uint32(f - fieldStatus), Count: value})
	case f.isName() && int(f-fieldName) < len(names):
		m.Counts = append(m.Counts, &nodev1.NamedCount{Name: names[f-fieldName], Count: value})
	case f.isRule():
		return readRule(m, f, value, rules)
	default:
		return false
	}
	return true
}
