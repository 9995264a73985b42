package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/lifesign"
)

const configJournal = "config.journal"

// Version of the data plane, set when a release is built: -ldflags "-X edge.svc/caddy/core.Version=1.2.3".
var Version = "dev"

// Core is the state of the process. Make it with New.
type Core struct {
	// InstanceID is new with each process.
	InstanceID string
	Started    time.Time

	stateDir          string
	options           map[string]any
	agentCapabilities []string
	clock             func() time.Time
	log               *zap.Logger
	tables            atomic.Pointer[exchange.Tables]
	loopID            atomic.Pointer[string]
	nodeID            atomic.Pointer[string]

	components []any
	making     []bool

	// Serialises changes of the configuration.
	mu           sync.Mutex
	state        *writerState
	position     *nodev1.ConfigPosition
	onExemptions []func()
	onChange     []func()

	notesMu sync.Mutex
	damages map[string]Damage
	nodeIDs map[string]string
	// Whose configuration this is, "" while there is none.
	clusterID string
	// The cluster of what is held, by journal.
	clusters map[string]string
}

// Options of a Core.
type Options struct {
	// StateDir is the folder with the journals.
	StateDir string
	// Values of the options that features registered, by name; missing ones have their defaults.
	Values map[string]any
	// AgentCapabilities are those of the agent, for which entries may ask, too.
	AgentCapabilities []string
	Log               *zap.Logger
	// Now is nil for the real clock.
	Now func() time.Time
}

// New makes a Core that holds what the journals of the state folder say.
func New(o Options) *Core {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	var id [8]byte
	// Never fails.
	_, _ = rand.Read(id[:])
	c := &Core{
		InstanceID:        hex.EncodeToString(id[:]),
		stateDir:          o.StateDir,
		options:           o.Values,
		agentCapabilities: o.AgentCapabilities,
		clock:             o.Now,
		log:               o.Log,
		components:        make([]any, len(components)),
		making:            make([]bool, len(components)),
		state:             newWriterState(),
		position:          &nodev1.ConfigPosition{},
		damages:           map[string]Damage{},
		nodeIDs:           map[string]string{},
		clusters:          map[string]string{},
	}
	c.Started = c.Now()
	c.tables.Store(exchange.NewTables())
	c.setLoopID(c.InstanceID)
	for i := range components {
		c.makeComponent(i)
	}
	// A new process has nothing to keep, so this does not fail; what was wrong stands in the status.
	lifesign.Tell(lifesign.ReadingConfig)
	_ = c.readConfig(true)
	lifesign.Tell(lifesign.Restoring)
	for _, r := range Each[restorer](c) {
		r.Restore()
	}
	lifesign.Tell(lifesign.Ready)
	return c
}

// StateDir is the folder with the journals, and with what else the agent keeps for the edge.
func (c *Core) StateDir() string { return c.stateDir }

// Log takes what features have to say.
func (c *Core) Log() *zap.Logger { return c.log }

// Now is the time of the core's clock.
func (c *Core) Now() time.Time {
	if c.clock == nil {
		return time.Now()
	}
	return c.clock()
}

// Clock is nil for the real clock, which is read more cheaply without it, or returns times that tests make up.
func (c *Core) Clock() func() time.Time { return c.clock }

// Tables returns the configuration of this moment.
func (c *Core) Tables() *exchange.Tables { return c.tables.Load() }

// LoopID is the token by which this node recognises requests that already passed through it.
func (c *Core) LoopID() string { return *c.loopID.Load() }

func (c *Core) setLoopID(nodeID string) {
	sum := sha256.Sum256([]byte(nodeID))
	id := "svc-" + hex.EncodeToString(sum[:8])
	c.loopID.Store(&id)
}

// NoteJournal remembers whose journal it is and what was wrong with it.
func (c *Core) NoteJournal(name string, header *edgev1.JournalHeader, d Damage) {
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	delete(c.damages, name)
	if d.Text != "" {
		c.damages[name] = d
		c.log.Warn("a journal is damaged", zap.String("journal", name), zap.String("damage", d.Text))
	}
	if header.GetNodeId() == "" {
		return
	}
	if name == configJournal {
		c.clusterID = header.GetClusterId()
	}
	c.nodeIDs[name] = header.GetNodeId()
	c.setLoopID(header.GetNodeId())
	id := header.GetNodeId()
	c.nodeID.Store(&id)
}

// RowID names what a log tells of an exchange: by the node, this process and a number. No other exchange of any node has it.
func (c *Core) RowID(x *exchange.Exchange) string {
	return c.NodeID() + "-" + c.InstanceID + "-" + strconv.FormatUint(x.Row(), 10)
}

// NodeID is the id of the node, "" before a journal said it.
func (c *Core) NodeID() string {
	if id := c.nodeID.Load(); id != nil {
		return *id
	}
	return ""
}

// Followed forgets that a journal was torn, after a change that came from the agent: the agent went on from where it ended, so what was missing was a record
// still being written, or one that was cut off since.
func (c *Core) Followed(name string) {
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	if c.damages[name].Torn {
		delete(c.damages, name)
	}
}

// Position is what the configuration is at.
func (c *Core) Position() *nodev1.ConfigPosition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.position
}

// Status is what the core reports of itself.
type Status struct {
	Position *nodev1.ConfigPosition
	Sites    int
	Failed   []*nodev1.FailedEntry
	// Entries that are lacking.
	Lacking  int
	Warnings []string
}

// Status returns the state of this moment.
func (c *Core) Status() Status {
	c.mu.Lock()
	s := Status{Position: c.position, Sites: SiteCount(c.Tables()), Failed: c.failedEntries(), Lacking: len(c.state.lacking)}
	failing := len(c.state.failed)
	c.mu.Unlock()
	if failing > maxReportedFailures {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d entries fail, %d are listed", failing, maxReportedFailures))
	}
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.damages)) {
		s.Warnings = append(s.Warnings, c.damages[name].Text)
	}
	var owners []string
	for _, name := range slices.Sorted(maps.Keys(c.nodeIDs)) {
		if owner := c.nodeIDs[name]; !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	if len(owners) > 1 {
		s.Warnings = append(s.Warnings, "the journals are of different nodes: "+strings.Join(owners, " and "))
	}
	return s
}

// LogPanic says that a panic was contained.
func (c *Core) LogPanic(doing string, p any) {
	c.log.Error("a panic was contained", zap.String("doing", doing), zap.Any("panic", p), zap.Stack("stack"))
}

// The core of the process.
var (
	processMu   sync.Mutex
	processCore *Core
	processOpts Options
)

// errOptions says that a later configuration asked for another core than the one that runs.
var errOptions = errors.New("the options of the app cannot change while the process runs, except for the socket")

// process returns the core of this process, made at the first call.
func process(o Options) (*Core, error) {
	processMu.Lock()
	defer processMu.Unlock()
	if processCore == nil {
		processCore, processOpts = New(o), o
		processCore.run(nil)
		// After the servers have stopped.
		caddy.OnExit(func(context.Context) { processCore.end() })
		return processCore, nil
	}
	if o.StateDir != processOpts.StateDir || !maps.Equal(o.Values, processOpts.Values) ||
		!slices.Equal(o.AgentCapabilities, processOpts.AgentCapabilities) {
		return nil, errOptions
	}
	return processCore, nil
}
