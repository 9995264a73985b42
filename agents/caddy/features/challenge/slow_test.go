package challenge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

// deadlines is a response writer that notes until when the body may be read.
type deadlines struct {
	*httptest.ResponseRecorder
	longest time.Time
}

func (d *deadlines) SetReadDeadline(until time.Time) error {
	if until.After(d.longest) {
		d.longest = until
	}
	return nil
}

// Who sends a body slowly holds nothing up for long, whatever the answer is.
func TestBodiesAreBoundedInTime(t *testing.T) {
	n := newNode(t)
	admit := func(w http.ResponseWriter, r *http.Request) {
		exchangetest.Serve(w, r, func(x *exchange.Exchange) *exchange.Answer { return n.Admit(x, &n.visit, Demand{Level: JS}) })
	}
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"an answer":                    n.verify,
		"one that is too long":         func(w http.ResponseWriter, r *http.Request) { r.ContentLength = 1 << 20; n.verify(w, r) },
		"a refused upload":             admit,
		"a page for a GET with a body": func(w http.ResponseWriter, r *http.Request) { r.Method = "GET"; admit(w, r) },
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("POST", "/", strings.NewReader("t=x"))
		r.ContentLength = -1
		answer(w, r)
		if w.longest.IsZero() || time.Until(w.longest) > 10*time.Second {
			t.Errorf("%s: %v", name, w.longest)
		}
	}
}
