package svcchallenge

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlines is a response writer that notes until when the body may be read.
type deadlines struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (d *deadlines) SetReadDeadline(until time.Time) error {
	d.until = until
	return nil
}

// Who sends a body slowly holds nothing up for long, whatever the answer is.
func TestBodiesAreBoundedInTime(t *testing.T) {
	n := newNode(t)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"an answer":            func(w http.ResponseWriter, r *http.Request) { n.Verify(w, r, &n.visit) },
		"one that is too long": func(w http.ResponseWriter, r *http.Request) { r.ContentLength = 1 << 20; n.Verify(w, r, &n.visit) },
		"a refused upload":     func(w http.ResponseWriter, r *http.Request) { n.Admit(w, r, &n.visit, Demand{Level: JS}) },
		"a page for a GET with a body": func(w http.ResponseWriter, r *http.Request) {
			r.Method = "GET"
			n.Admit(w, r, &n.visit, Demand{Level: JS})
		},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("POST", "/", http.NoBody)
		r.ContentLength = -1
		answer(w, r)
		if w.until.IsZero() || time.Until(w.until) > 10*time.Second {
			t.Errorf("%s: %v", name, w.until)
		}
	}
}
