package exchange

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// maxAhead is how much of the requests after the current one is looked at. The server reads no further than its buffer;
// what is beyond counts for the current request.
const maxAhead = 64 << 10

// Meter counts what a plain HTTP/1 connection carries, byte for byte as it flows, for the accounts of the sites whose
// requests these are. Where one request ends and the next begins it finds out from the bytes themselves, because the
// server reads ahead: the end of a head is the first empty line, the end of a body follows from its length. What belongs
// to no request of a site counts for the node. Its methods may be called by several goroutines.
type Meter struct {
	node *Account
	// Who pays for what is written and for the rest of the request; nil between requests.
	owner atomic.Pointer[Account]

	mu sync.Mutex
	// Bytes of the current request that nobody pays for yet, because its site is not known.
	unbilled uint64
	waiting  bool
	// What is still to come of the body, and whether all that comes belongs to the current request.
	left  int64
	whole bool
	next  headScan
	// Bytes after the next head.
	ahead  []byte
	closed bool
}

// Init makes a meter ready. Without an account it counts nothing.
func (m *Meter) Init(node *Account) { m.node = node }

// Received counts what was read from the client.
func (m *Meter) Received(p []byte) {
	if m.node == nil || len(p) == 0 {
		return
	}
	m.mu.Lock()
	m.receive(p)
	m.mu.Unlock()
}

// ReceivedBefore counts bytes that came before any request, such as a PROXY header.
func (m *Meter) ReceivedBefore(n int) {
	if m.node != nil && n > 0 {
		m.node.receive(uint64(n))
	}
}

// Sent counts what was written to the client.
func (m *Meter) Sent(p []byte) {
	if m.node == nil || len(p) == 0 {
		return
	}
	owner := m.owner.Load()
	if owner == nil {
		// Nobody but the server writes between two requests: it refused one.
		owner = m.node
		if status := StatusOf(p); status != 0 && owner.refused != nil {
			owner.refused(status)
		}
	}
	owner.send(uint64(len(p)))
}

// SentBody counts bytes of the body of the current response, which left without being seen.
func (m *Meter) SentBody(n int64) {
	if m.node == nil || n <= 0 {
		return
	}
	owner := m.owner.Load()
	if owner == nil {
		owner = m.node
	}
	owner.send(uint64(n))
}

// Begin says that the server has read a head, of a request with a body of so many bytes. whole says that the connection
// ends with this request, so that all that comes belongs to it.
func (m *Meter) Begin(length int64, whole bool) {
	if m.node == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(m.node)
	m.owner.Store(m.node)
	m.waiting = true
	m.unbilled, m.left, m.whole = m.next.bytes, max(length, 0), whole || length < 0
	ahead := m.ahead
	m.next, m.ahead = headScan{}, nil
	m.receive(ahead)
}

// Bill says for whom the current request counts, as a whole.
func (m *Meter) Bill(a *Account) {
	if m.node == nil {
		return
	}
	m.mu.Lock()
	m.owner.Store(a)
	m.settle(a)
	m.mu.Unlock()
}

// KeepAll says that the connection is another protocol's from here on: all that is still to come, and what was read
// already, belongs to the current request.
func (m *Meter) KeepAll() {
	if m.node == nil {
		return
	}
	m.mu.Lock()
	m.whole = true
	m.bill(m.untold())
	m.mu.Unlock()
}

// Refuse says that the current request is answered before any stage saw it.
func (m *Meter) Refuse(status int) {
	if m.node != nil && m.node.refused != nil {
		m.node.refused(status)
	}
}

// End says that the answer to the current request has left and that another request may follow.
func (m *Meter) End() {
	if m.node == nil {
		return
	}
	m.mu.Lock()
	m.settle(m.node)
	m.owner.Store(nil)
	m.mu.Unlock()
}

// Close counts what never became a request. What is still read or written counts at once.
func (m *Meter) Close() {
	if m.node == nil {
		return
	}
	m.mu.Lock()
	m.settle(m.node)
	m.closed = true
	m.node.receive(m.untold())
	m.mu.Unlock()
}

// settle has an account pay for what nobody pays for yet.
func (m *Meter) settle(a *Account) {
	if m.waiting {
		m.waiting = false
		a.receive(m.unbilled)
		m.unbilled = 0
	}
}

// untold takes what was read of requests to come.
func (m *Meter) untold() uint64 {
	n := m.next.bytes + uint64(len(m.ahead))
	m.next, m.ahead = headScan{}, nil
	return n
}

// bill counts bytes of the current request.
func (m *Meter) bill(n uint64) {
	if m.waiting {
		m.unbilled += n
		return
	}
	owner := m.owner.Load()
	if owner == nil {
		owner = m.node
	}
	owner.receive(n)
}

func (m *Meter) receive(p []byte) {
	switch {
	case m.whole:
		m.bill(uint64(len(p)))
		return
	case m.closed:
		m.node.receive(uint64(len(p)))
		return
	case m.left > 0:
		n := min(m.left, int64(len(p)))
		m.bill(uint64(n))
		m.left -= n
		p = p[n:]
	}
	if !m.next.over {
		p = p[m.next.scan(p):]
	}
	if len(p) == 0 {
		return
	}
	if len(m.ahead)+len(p) > maxAhead {
		m.bill(uint64(len(p)))
		return
	}
	m.ahead = append(m.ahead, p...)
}

// headScan finds the end of a head: the first empty line after one that is not, as the server reads it.
type headScan struct {
	bytes uint64
	at    placeInHead
	over  bool
}

type placeInHead uint8

const (
	beforeHead placeInHead = iota
	inLine
	atLine
	afterReturn
)

// scan returns how many of the bytes belong to the head.
func (s *headScan) scan(p []byte) int {
	i := 0
	for i < len(p) && !s.over {
		c := p[i]
		switch {
		case s.at == inLine:
			end := bytes.IndexByte(p[i:], '\n')
			if end < 0 {
				i = len(p)
				continue
			}
			i += end
			s.at = atLine
		case s.at == beforeHead && (c == '\r' || c == '\n'):
		case s.at == atLine && c == '\r':
			s.at = afterReturn
		case (s.at == atLine || s.at == afterReturn) && c == '\n':
			s.over = true
		default:
			s.at = inLine
		}
		i++
	}
	s.bytes += uint64(i)
	return i
}

// StatusOf returns the status of a response of HTTP/1 that begins with its status line, 0 for anything else.
func StatusOf(p []byte) int {
	const before = len("HTTP/1.1 ")
	if len(p) < before+3 || string(p[:7]) != "HTTP/1." {
		return 0
	}
	status := 0
	for _, c := range p[before : before+3] {
		if c < '0' || c > '9' {
			return 0
		}
		status = 10*status + int(c-'0')
	}
	return status
}
