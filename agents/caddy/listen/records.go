package listen

import "sync"

// records gathers what one write of TLS makes of records: they leave by as few system calls as their room allows. A frame of HTTP/2
// does not fit one record, and at the beginning of a connection records are small.
type records struct {
	mu sync.Mutex
	// Records are gathered, in held where there are any.
	on   bool
	held *[]byte
}

const (
	// Writes up to this size make one record.
	oneRecord = 1 << 10
	// Room for two records of the largest size.
	maxRecords = 36 << 10
)

var recordRooms = sync.Pool{New: func() any { return new(make([]byte, 0, maxRecords)) }}

// together has the records of a write leave together.
func (c *Conn) together(p []byte, write func([]byte) (int, error)) (int, error) {
	if c == nil || !c.overTLS || len(p) <= oneRecord {
		return write(p)
	}
	c.records.begin()
	n, err := write(p)
	if failed := c.records.end(c.send); failed != nil && err == nil {
		// How much of it left nobody knows: the connection is over.
		return 0, failed
	}
	return n, err
}

func (r *records) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
}

// end sends what is gathered.
func (r *records) end(send func([]byte) (int, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.empty(send)
}

// empty sends what is held. The caller holds the lock: what is written meanwhile comes behind it.
func (r *records) empty(send func([]byte) (int, error)) error {
	held := r.held
	if held == nil {
		return nil
	}
	r.held = nil
	_, err := send(*held)
	*held = (*held)[:0]
	recordRooms.Put(held)
	return err
}

// write takes a record.
func (r *records) write(p []byte, send func([]byte) (int, error)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil && len(*r.held)+len(p) > maxRecords {
		if err := r.empty(send); err != nil {
			return 0, err
		}
	}
	if !r.on || len(p) > maxRecords {
		return send(p)
	}
	if r.held == nil {
		r.held = recordRooms.Get().(*[]byte)
	}
	*r.held = append(*r.held, p...)
	return len(p), nil
}
