package hold

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MaxSockets is how many one holder keeps.
	MaxSockets = 1024
	// maxConnections is how many processes ask at a time, with some to spare.
	maxConnections = 32
	// How long a request waits while the sockets are handed over.
	turnTime = 2 * messageTime
)

var (
	errFull   = errors.New("the holder has as many sockets as it keeps")
	errTurn   = errors.New("the holder is being replaced")
	errHanded = errors.New("the sockets were handed over")
)

// Holder keeps sockets open.
type Holder struct {
	listener *net.UnixListener
	// Its descriptor, for a successor.
	own int
	// Who has its element may use what is held.
	turn chan struct{}
	held map[Socket]int
	// Connections that are open, and when the last one ended.
	connections atomic.Int64
	idleSince   atomic.Int64
	handed      chan struct{}
}

// New makes a holder that is asked over a listener, which is closed with it, and that has these sockets already.
func New(listener *net.UnixListener, held map[Socket]int) (*Holder, error) {
	own, err := duplicate(listener)
	if err != nil {
		return nil, err
	}
	h := &Holder{listener: listener, own: own, turn: make(chan struct{}, 1), held: held, handed: make(chan struct{})}
	h.idleSince.Store(time.Now().UnixNano())
	h.turn <- struct{}{}
	return h, nil
}

// Serve answers until the context ends, until the sockets were handed to another holder, or until nobody has been
// connected for as long as linger, unless that is 0. It closes everything.
func (h *Holder) Serve(ctx context.Context, linger time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- h.accept() }()
	var look <-chan time.Time
	if linger > 0 {
		ticker := time.NewTicker(max(linger/4, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			h.close()
			return nil
		case <-h.handed:
			// The path of the socket is the successor's now.
			h.listener.SetUnlinkOnClose(false)
			h.close()
			return errHanded
		case err := <-ended:
			h.close()
			return err
		case now := <-look:
			if h.connections.Load() == 0 && now.UnixNano()-h.idleSince.Load() > int64(linger) {
				h.close()
				return nil
			}
		}
	}
}

func (h *Holder) close() {
	_ = h.listener.Close()
	_ = unix.Close(h.own)
	if h.take() {
		for name, fd := range h.held {
			_ = unix.Close(fd)
			delete(h.held, name)
		}
		h.give()
	}
}

func (h *Holder) accept() error {
	for {
		conn, err := h.listener.AcceptUnix()
		if err != nil {
			if temporary, ok := err.(interface{ Temporary() bool }); ok && temporary.Temporary() {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return err
		}
		if h.connections.Add(1) > maxConnections || !allowed(conn) {
			h.left(conn)
			continue
		}
		go func() {
			defer h.left(conn)
			h.answer(conn)
		}()
	}
}

func (h *Holder) left(conn *net.UnixConn) {
	_ = conn.Close()
	h.idleSince.Store(time.Now().UnixNano())
	h.connections.Add(-1)
}

// take waits for its turn.
func (h *Holder) take() bool {
	timer := time.NewTimer(turnTime)
	defer timer.Stop()
	select {
	case <-h.turn:
		return true
	case <-timer.C:
		return false
	}
}

func (h *Holder) give() { h.turn <- struct{}{} }

// answer answers the requests of a connection. One that makes no sense is its last.
func (h *Holder) answer(conn *net.UnixConn) {
	// A successor keeps its turn from its first page on, until it has everything or is gone.
	handing := false
	defer func() {
		if handing {
			h.give()
		}
	}()
	for {
		var limit time.Time
		if handing {
			limit = time.Now().Add(messageTime)
		}
		_ = conn.SetReadDeadline(limit)
		var r request
		given, err := receive(conn, maxRequest, &r)
		if err != nil {
			if errors.Is(err, errMalformed) {
				_ = send(conn, failure(err))
			}
			return
		}
		if !handing && !h.take() {
			closeAll(given)
			_ = send(conn, failure(errTurn))
			return
		}
		if handing && r.Do == "handed" {
			closeAll(given)
			_ = send(conn, &reply{})
			close(h.handed)
			return
		}
		answer, passed, known := h.do(r, given)
		err = send(conn, answer, passed...)
		handing = r.Do == "hand"
		if !handing {
			h.give()
		}
		if err != nil || !known {
			return
		}
	}
}

// do answers a request, with descriptors to pass on. Those that were given are kept or closed.
func (h *Holder) do(r request, given []int) (answer *reply, passed []int, known bool) {
	kept := false
	defer func() {
		if !kept {
			closeAll(given)
		}
	}()
	if want := map[string]int{"adopt": 1}[r.Do]; len(given) != want {
		return failure(errMalformed), nil, false
	}
	switch r.Do {
	case "list":
		return h.page(r.From, false)
	case "hand":
		return h.page(r.From, true)
	case "open":
		fd, has := h.held[r.Socket]
		if !has {
			var err error
			if len(h.held) >= MaxSockets {
				return failure(errFull), nil, true
			}
			if fd, err = open(r.Socket); err != nil {
				return failure(err), nil, true
			}
			h.held[r.Socket] = fd
		}
		return &reply{Sockets: []Socket{r.Socket}}, []int{fd}, true
	case "adopt":
		if _, has := h.held[r.Socket]; has {
			return &reply{}, nil, true
		}
		if len(h.held) >= MaxSockets {
			return failure(errFull), nil, true
		}
		if err := r.Socket.is(given[0]); err != nil {
			return failure(err), nil, true
		}
		h.held[r.Socket], kept = given[0], true
		return &reply{}, nil, true
	case "close":
		if fd, has := h.held[r.Socket]; has {
			_ = unix.Close(fd)
			delete(h.held, r.Socket)
		}
		return &reply{}, nil, true
	}
	return failure(errMalformed), nil, false
}

// page is a part of what is held, from an index on; with descriptors for a successor, the one of the listener first.
func (h *Holder) page(from int, hand bool) (*reply, []int, bool) {
	names := slices.SortedFunc(maps.Keys(h.held), func(a, b Socket) int { return cmp.Compare(a.String(), b.String()) })
	if from < 0 || from > len(names) {
		return failure(errMalformed), nil, false
	}
	// One is left for the listener.
	end := min(from+pageSockets-1, len(names))
	answer := &reply{Sockets: names[from:end], More: end < len(names)}
	if !hand {
		return answer, nil, true
	}
	var passed []int
	if from == 0 {
		passed = append(passed, h.own)
	}
	for _, name := range answer.Sockets {
		passed = append(passed, h.held[name])
	}
	return answer, passed, true
}
