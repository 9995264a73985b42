package requestlog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// Of one answer to the agent.
	drainRows  = 2000
	drainBytes = 1 << 20
)

// Log has the rows of all sites until the console has them.
type Log struct {
	now    func() time.Time
	boot   uint64
	folder string
	room   int
	geo    func() exchange.Geo
	tell   func(doing string, err error)
	// The console's clock minus this machine's.
	offsetMs atomic.Int64
	// nil while nobody watches requests as they end.
	tails atomic.Pointer[tails]

	mu sync.Mutex
	// nil until there is a row to keep, or the agent asks.
	ring *ring
	// The last answer: where its rows end, and how often there had been losses.
	answered, answeredLosses uint64
	// Losses that the console has.
	toldLosses uint64
	broken     bool
}

var component = core.NewComponent("request logs", func(c *core.Core) *Log {
	l := newLog(filepath.Join(c.StateDir(), "logs"), ringRoom, c.Now, func(doing string, err error) {
		c.Log().Error("cannot keep rows of request logs on disk; the edge continues to serve", zap.String("while", doing), zap.Error(err))
	})
	l.geo = sync.OnceValue(func() exchange.Geo { return core.Find[exchange.Geo](c) })
	return l
})

func init() {
	core.RegisterCall(edgev1connect.EdgeServiceDrainLogsProcedure, drainLogs)
	core.RegisterCall(edgev1connect.EdgeServiceTailLogsProcedure, tailLogs)
}

// Of returns the log of a core.
func Of(c *core.Core) *Log { return component.Of(c) }

func newLog(folder string, room int, now func() time.Time, tell func(doing string, err error)) *Log {
	var boot [8]byte
	_, _ = rand.Read(boot[:])
	return &Log{
		now: now, boot: binary.LittleEndian.Uint64(boot[:]), folder: folder, room: room, tell: tell,
		geo: func() exchange.Geo { return nil },
	}
}

// open makes the ring ready. The lock is held.
func (l *Log) open() *ring {
	if l.ring == nil {
		r, err := openRing(l.folder, l.room)
		if err != nil {
			l.broken = r.file == nil
			l.tell("opening the ring", err)
		}
		l.ring = r
		l.offsetMs.CompareAndSwap(0, int64(order.Uint64(r.data[atOffset:])))
	}
	return l.ring
}

// with does something with the ring. A disk that fails below it costs what is in it.
func (l *Log) with(do func(r *ring)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.open(); guarded(func() { do(r) }) {
		return
	}
	l.tell("writing the ring", errNoRing)
	l.broken = true
	l.ring = &ring{room: uint64(l.room), data: make([]byte, ringHeader+l.room)}
	l.ring.begin()
}

func (l *Log) put(site string, row []byte) {
	l.with(func(r *ring) {
		if !r.put(site, row) {
			r.lose(site)
		}
	})
}

func (l *Log) lose(site string) { l.with(func(r *ring) { r.lose(site) }) }

func tailLogs(_ context.Context, c *core.Core, r *edgev1.TailLogsRequest) (*edgev1.TailLogsResponse, error) {
	return Of(c).Tail(r), nil
}

func drainLogs(_ context.Context, c *core.Core, r *edgev1.DrainLogsRequest) (*edgev1.DrainLogsResponse, error) {
	return Of(c).Drain(r), nil
}

// Drain gives up what was acknowledged and returns the oldest rows that are left. They are returned until they are
// acknowledged, also by another process.
func (l *Log) Drain(request *edgev1.DrainLogsRequest) *edgev1.DrainLogsResponse {
	response := &edgev1.DrainLogsResponse{}
	if !l.exists() {
		return response
	}
	l.with(func(r *ring) {
		if offset := request.GetClockOffsetMs(); offset != 0 {
			l.offsetMs.Store(offset)
			order.PutUint64(r.data[atOffset:], uint64(offset))
		}
		if request.GetRing() == r.name() {
			r.release(request.GetAcknowledged())
			if request.GetAcknowledged() == l.answered {
				l.toldLosses = l.answeredLosses
			}
		}
		response.Ring = r.name()
		response.Rows, response.Position = r.take(drainRows, drainBytes)
		l.answered, l.answeredLosses = response.Position, r.losses
		if r.losses == l.toldLosses {
			return
		}
		for site, slot := range r.slots {
			if rows := order.Uint64(r.loss(slot)[lossCount:]); rows > 0 {
				response.Losses = append(response.Losses, &nodev1.LogLoss{SiteId: site, Rows: rows})
			}
		}
	})
	return response
}

// exists reports whether there ever was a row to keep: a node without any needs no ring.
func (l *Log) exists() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ring != nil {
		return true
	}
	_, err := os.Stat(ringPath(l.folder))
	return err == nil
}

// FillStatus says so where a process that is killed would take its rows with it.
func (l *Log) FillStatus(status *edgev1.GetStatusResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		status.Warnings = append(status.Warnings, "rows of request logs cannot be written to their folder: they are kept in memory")
	}
}
