package freshness

import (
	"net/http"
	"strings"
	"time"
)

// date reads an HTTP-date in one of its three forms (RFC 9110 section 5.6.7), to the letter: anything else is no date. A year
// of two digits that would be more than 50 years ahead of now is of the past.
func date(text string, now time.Time) (time.Time, bool) {
	if len(text) == len(http.TimeFormat) && strings.HasSuffix(text, " GMT") {
		return exactly(http.TimeFormat, text)
	}
	if strings.HasSuffix(text, " GMT") {
		t, ok := exactly("Monday, 02-Jan-06 15:04:05 GMT", text)
		if !ok {
			return t, false
		}
		century := now.Year() - now.Year()%100
		t = t.AddDate(century-t.Year()+t.Year()%100, 0, 0)
		if t.After(now.AddDate(50, 0, 0)) {
			t = t.AddDate(-100, 0, 0)
		}
		return t, true
	}
	return exactly(time.ANSIC, text)
}

// exactly parses a text that the layout would also write: time.Parse alone takes other spellings.
func exactly(layout, text string) (time.Time, bool) {
	t, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}, false
	}
	// The day of the week is not compared: origins that name a wrong one mean the date.
	_, written, _ := strings.Cut(t.Format(layout), " ")
	_, given, _ := strings.Cut(text, " ")
	return t, written == given
}

// dateIn is the date of a field with one line; ok is false where it is missing, doubled or not valid.
func dateIn(h http.Header, name string, now time.Time) (t time.Time, ok bool) {
	lines := h[name]
	if len(lines) != 1 {
		return time.Time{}, false
	}
	return date(trim(lines[0]), now)
}

// ageIn is the time of the field Age (RFC 9111 section 5.1): the first member of the list, 0 where it is not valid.
func ageIn(h http.Header) time.Duration {
	for _, line := range h["Age"] {
		first, _, _ := strings.Cut(line, ",")
		n, _ := number(trim(first))
		return time.Duration(n) * time.Second
	}
	return 0
}
