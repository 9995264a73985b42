package origin

import "sync"

// moving is the connection whose body another goroutine copies. It can be interrupted only as long as it is that body's.
type moving struct {
	mu          sync.Mutex
	conn        *conn
	interrupted bool
}

// begin reports false where it was interrupted before.
func (m *moving) begin(c *conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn = c
	return !m.interrupted
}

// end reports whether the connection is as it was.
func (m *moving) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn = nil
	return !m.interrupted
}

func (m *moving) interrupt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interrupted = true
	if m.conn != nil {
		m.conn.abort()
	}
}
