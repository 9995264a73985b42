package origin

// heldAnswer is the answer of an origin while others are asked. What the own client has of it is set aside.
type heldAnswer struct {
	head     head
	origin   origin
	conn     *conn
	response *response
	figures  *figures
}

// hold sets an answer aside in favour of another try. It replaces one that is held.
func (t *fetch) hold(answer head) {
	t.dropHeld()
	t.held.head, t.held.figures = answer, t.figures
	if answer == head(t) {
		t.held.origin, t.held.conn, t.held.response = *t.origin, t.conn, t.response
		t.origin, t.conn, t.response = nil, nil, nil
	}
}

// takeHeld returns the answer that is held, nil when there is none.
func (t *fetch) takeHeld() head {
	answer := t.held.head
	if answer != nil {
		t.figures = t.held.figures
	}
	if answer == head(t) {
		// Where rules have something else dialled, this is no origin of the group.
		t.derived = t.held.origin
		t.origin, t.conn, t.response = &t.derived, t.held.conn, t.held.response
	}
	t.held = heldAnswer{}
	return answer
}

// dropHeld gives up the answer that is held. An answer that is the fetch's own by then stays.
func (t *fetch) dropHeld() {
	if t.held.head == nil {
		return
	}
	derived, o, c, a, f := t.derived, t.origin, t.conn, t.response, t.figures
	t.takeHeld().discard()
	t.derived, t.origin, t.conn, t.response, t.figures = derived, o, c, a, f
}
