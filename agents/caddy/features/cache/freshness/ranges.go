package freshness

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Range is what a client gets of a body.
type Range struct {
	// From is its first byte, Length the number of bytes.
	From, Length int64
}

// RangeResult says how a range is responded to.
type RangeResult uint8

// The results.
const (
	// Whole is the response without a range: none was asked for, or what was asked for is not served.
	Whole RangeResult = iota
	Partial
	// Unsatisfiable is the status 416.
	Unsatisfiable
)

// RangeOf decides about the Range and If-Range of a GET for a stored, complete body of status 200 (RFC 9110 section 14.2). A
// request for several ranges gets the whole body (section 14.2 allows it), and so does one with a unit other than bytes.
func RangeOf(request, stored http.Header, length int64, received time.Time) (Range, RangeResult) {
	lines := request["Range"]
	if len(lines) != 1 || !ifRange(request["If-Range"], stored, received) {
		return Range{0, length}, Whole
	}
	unit, set, ok := strings.Cut(trim(lines[0]), "=")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return Range{0, length}, Whole
	}
	first, last, ok := strings.Cut(trim(set), "-")
	if !ok || strings.IndexByte(set, ',') >= 0 {
		return Range{0, length}, Whole
	}
	if first == "" {
		return suffix(last, length)
	}
	from, ok := position(first)
	if !ok {
		return Range{0, length}, Whole
	}
	end := length - 1
	if last != "" {
		to, ok := position(last)
		if !ok || to < from {
			return Range{0, length}, Whole
		}
		end = min(end, to)
	}
	if from >= length {
		return Range{}, Unsatisfiable
	}
	return Range{from, end - from + 1}, Partial
}

func suffix(text string, length int64) (Range, RangeResult) {
	n, ok := position(text)
	switch {
	case !ok:
		return Range{0, length}, Whole
	case n == 0 || length == 0:
		return Range{}, Unsatisfiable
	}
	n = min(n, length)
	return Range{length - n, n}, Partial
}

// position reads digits; more than an int64 holds is its largest value.
func position(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}

// ifRange reports whether a range may be served (RFC 9110 section 13.1.5): the tag must be the same strong one, or the date
// the same as a Last-Modified that is a strong validator, being 60 s older than Date (section 8.8.2.2).
func ifRange(lines []string, stored http.Header, received time.Time) bool {
	if len(lines) == 0 {
		return true
	}
	if len(lines) > 1 {
		return false
	}
	wanted := trim(lines[0])
	if strings.HasPrefix(wanted, `"`) || strings.HasPrefix(wanted, "W/") {
		return wanted == StrongTag(stored)
	}
	at, ok := date(wanted, received)
	modified, has := dateIn(stored, "Last-Modified", received)
	sent, dated := dateIn(stored, "Date", received)
	return ok && has && dated && at.Equal(modified) && sent.Sub(modified) >= time.Minute
}

// AppendContentRange appends the value of Content-Range for a part of a body.
func (r Range) AppendContentRange(b []byte, length int64) []byte {
	b = append(b, "bytes "...)
	b = strconv.AppendInt(b, r.From, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, r.From+r.Length-1, 10)
	b = append(b, '/')
	return strconv.AppendInt(b, length, 10)
}
