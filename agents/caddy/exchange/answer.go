package exchange

import (
	"net"
	"net/http"
)

// From says who made an answer. The values can be combined to say which answers something concerns.
type From uint8

// Who makes answers.
const (
	FromEdge From = 1 << iota
	FromOrigin
	FromCache

	// FromSite is what the site itself said, now or before.
	FromSite = FromOrigin | FromCache
	FromAll  = FromEdge | FromSite
)

// Answer is what a client gets. An exchange has one, which a later answer replaces.
type Answer struct {
	Status int
	// Header is the one of the client's writer, so that nothing is copied.
	Header http.Header
	// Bytes is a body that is there already; Body one that comes. At most one of them is set.
	Bytes []byte
	Body  Source
	// Trailer is set by Body while it copies itself.
	Trailer http.Header
	// Upgrade takes over the connection of an answer 101; nothing comes after it.
	Upgrade Tunnel
	// Code names an answer of the edge, as the header X-Svc-Error does; "" for others.
	Code string
	From From
	// Stage is the stage that answered.
	Stage string
	// Drop gives the client no answer at all and ends its connection, or its stream.
	Drop bool
	// CloseConn ends the client's connection after the answer. It outlives the answer: what made it necessary stays.
	CloseConn bool

	// What an operator's page replaced; replacedStatus is 0 where none did.
	replacedStatus int
	replacedFrom   From
}

// Replaces notes the response whose place this one takes: it says how the site fared, whatever the client gets.
func (a *Answer) Replaces(status int, from From) { a.replacedStatus, a.replacedFrom = status, from }

// Original is status and maker of the response, before an operator's page took its place.
func (a *Answer) Original() (status int, from From) {
	if a.replacedStatus != 0 {
		return a.replacedStatus, a.replacedFrom
	}
	return a.Status, a.From
}

// Source is a body that pushes itself into a sink.
type Source interface {
	// CopyTo writes the body. It flushes before it would have to wait for more, and never after the last byte.
	CopyTo(sink Sink) error
	// Close gives up what is left of the body. It is called once, also after CopyTo.
	Close()
}

// Tunnel joins the connection of a client with another until one of the two ends. early is what the client sent already.
type Tunnel interface {
	Join(client net.Conn, early []byte)
}

// Responded is who made the response of an exchange that is over, and its code.
func (x *Exchange) Responded() (from From, code string) { return x.answer.From, x.answer.Code }

// Respond begins an answer of the edge in the place of any other.
func (x *Exchange) Respond(status int) *Answer {
	a := x.begin(status)
	a.From = FromEdge
	return a
}

// RespondFrom begins an answer of an origin or a cache in the place of any other.
func (x *Exchange) RespondFrom(from From, status int) *Answer {
	a := x.begin(status)
	a.From = from
	return a
}

func (x *Exchange) begin(status int) *Answer {
	a := &x.answer
	a.closeBody()
	h := x.writer.Header()
	clear(h)
	*a = Answer{Status: status, Header: h, CloseConn: a.CloseConn}
	return a
}

// CloseAfter ends the client's connection after the answer, whichever it will be.
func (x *Exchange) CloseAfter() { x.answer.CloseConn = true }

// EndsAfter reports whether the client's connection ends after the answer.
func (x *Exchange) EndsAfter() bool { return x.answer.CloseConn }

// Tunnelled reports whether the answer made the connection another protocol's.
func (x *Exchange) Tunnelled() bool { return x.answer.Upgrade != nil }

// Drop answers nothing and ends the client's connection.
func (x *Exchange) Drop() *Answer {
	a := x.begin(0)
	a.From, a.Drop = FromEdge, true
	return a
}

func (a *Answer) closeBody() {
	if a.Body != nil {
		body := a.Body
		a.Body = nil
		body.Close()
	}
}
