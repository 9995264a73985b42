// Package svccore holds what an edge node serves: the sites and their hosts, address lists, settings and bans of its
// cluster. There is one Core in a process; it survives every load of a Caddy configuration, and nothing about sites
// goes through one.
//
// One writer at a time makes the next tables and publishes them with one store of a pointer. Readers never lock.
package svccore

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svcbans"
	"edge.svc/caddy/svccc"
	"edge.svc/caddy/svcchallenge"
	"edge.svc/caddy/svcorigin"
)

const (
	configJournal = "config.journal"
	bansJournal   = "bans.journal"
)

// Version of the data plane, set when a release is built: -ldflags "-X edge.svc/caddy/svccore.Version=1.2.3".
var Version = "dev"

// Core is the state of the process. Make it with New.
type Core struct {
	// InstanceID is new with each process.
	InstanceID string
	Started    time.Time
	Bans       *svcbans.Table
	// CC counts requests and answers floods.
	CC         *svccc.Guard
	Challenges *svcchallenge.Challenges
	// Health of the origins; it survives changes of their sites.
	Health *svcorigin.State
	// Transports holds the connections to origins.
	Transports *svcorigin.Transports
	Stats      *Stats
	// AnyProxyPeer says that a listener believes the PROXY header of every peer.
	AnyProxyPeer atomic.Bool

	stateDir string
	log      *zap.Logger
	tables   atomic.Pointer[Tables]
	loopID   atomic.Pointer[string]

	onExemptions func()

	// Serialises changes of the configuration, and of the bans among reloads.
	mu       sync.Mutex
	state    *writerState
	position *nodev1.ConfigPosition

	notesMu sync.Mutex
	damages map[string]damage
	nodeIDs map[string]string
}

// Options of a Core.
type Options struct {
	// StateDir is the folder with config.journal and bans.journal.
	StateDir string
	// BanCapacity is the number of bans held at most, BanMaxBytes their size.
	BanCapacity int
	BanMaxBytes int64
	// ChallengeReplayBytes is the room for answered challenges; 0 = the default.
	ChallengeReplayBytes int
	Log                  *zap.Logger
	Now                  func() time.Time
}

// New makes a Core that holds what the journals of the state folder say.
func New(o Options) *Core {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	// The table reads the real clock more cheaply than through a function.
	bans, ccNow := svcbans.New(o.BanCapacity, o.BanMaxBytes, o.Now), o.Now
	if o.Now == nil {
		o.Now = time.Now
	}
	var id [8]byte
	// Never fails.
	_, _ = rand.Read(id[:])
	c := &Core{
		InstanceID: hex.EncodeToString(id[:]),
		Started:    o.Now(),
		Bans:       bans,
		Challenges: svcchallenge.New(svcchallenge.Options{ReplayBytes: o.ChallengeReplayBytes, Now: o.Now}),
		Health:     svcorigin.NewState(),
		Stats:      newStats(o.Now),
		stateDir:   o.StateDir,
		log:        o.Log,
		state:      newWriterState(),
		position:   &nodev1.ConfigPosition{},
		damages:    map[string]damage{},
		nodeIDs:    map[string]string{},
	}
	c.Transports = svcorigin.NewTransportSet(func() *svcorigin.AddressPolicy { return c.Tables().Policy })
	c.tables.Store(emptyTables())
	c.CC = svccc.New(svccc.Options{
		Bans: bans, InstanceID: c.InstanceID, Thresholds: c.ccThresholds, Now: ccNow,
		Panicked: func(p any) { c.logPanic("evaluating CC mitigation", p) },
	})
	c.setLoopID(c.InstanceID)
	c.ReloadConfig()
	c.ReloadBans()
	return c
}

// Tables returns the configuration of this moment.
func (c *Core) Tables() *Tables { return c.tables.Load() }

// LoopID is the token by which this node recognises requests that already passed through it.
func (c *Core) LoopID() string { return *c.loopID.Load() }

func (c *Core) setLoopID(nodeID string) {
	sum := sha256.Sum256([]byte(nodeID))
	id := "svc-" + hex.EncodeToString(sum[:8])
	c.loopID.Store(&id)
}

// OnExemptions registers what is called after the addresses exempt from bans changed. Call it before the first change.
func (c *Core) OnExemptions(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onExemptions = f
}

// publish makes tables the configuration of this moment.
func (c *Core) publish(tables *Tables) {
	before := c.tables.Swap(tables)
	if c.onExemptions != nil && (before.allow != tables.allow || before.ClientIP != tables.ClientIP) {
		c.onExemptions()
	}
}

// ReloadBans reads the ban journal and swaps to what it says.
func (c *Core) ReloadBans() *edgev1.BanState {
	c.mu.Lock()
	defer c.mu.Unlock()
	position := &nodev1.BanPosition{}
	// Bans by id, in the order in which they came.
	at := map[string]int{}
	var bans []*nodev1.Ban
	header, d := readJournal(filepath.Join(c.stateDir, bansJournal), func(record *edgev1.JournalRecord) {
		change := record.GetBans()
		for _, id := range change.GetRemovedIds() {
			if i, ok := at[id]; ok {
				bans[i] = nil
				delete(at, id)
			}
		}
		for _, ban := range change.GetUpserts() {
			if i, ok := at[ban.GetId()]; ok {
				bans[i] = ban
				continue
			}
			at[ban.GetId()] = len(bans)
			bans = append(bans, ban)
		}
		if change.GetPosition() != nil {
			position = change.GetPosition()
		}
	})
	c.noteJournal(bansJournal, header, d)
	bans = slices.DeleteFunc(bans, func(ban *nodev1.Ban) bool { return ban == nil })
	return c.Bans.Replace(position, bans)
}

// ApplyBans moves the bans from base to target; it fails with svcbans.ErrBase when base is not the position held.
func (c *Core) ApplyBans(base, target *nodev1.BanPosition, upserts []*nodev1.Ban, removed []string, lifted []*nodev1.OwnBanLift) (*edgev1.BanState, error) {
	state, err := c.Bans.Apply(base, target, upserts, removed, lifted)
	if err == nil {
		c.followed(bansJournal)
		c.liftedOwn(lifted)
	}
	return state, err
}

// noteJournal remembers whose journal it is and what was wrong with it.
func (c *Core) noteJournal(name string, header *edgev1.JournalHeader, d damage) {
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	delete(c.damages, name)
	if d.text != "" {
		c.damages[name] = d
		c.log.Warn("journal is damaged", zap.String("journal", name), zap.String("damage", d.text))
	}
	if header.GetNodeId() == "" {
		return
	}
	c.nodeIDs[name] = header.GetNodeId()
	c.setLoopID(header.GetNodeId())
}

// followed forgets that a journal was torn: the agent went on from where it ended, so what was missing was a record
// still being written, or one that was cut off since.
func (c *Core) followed(name string) {
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	if c.damages[name].torn {
		delete(c.damages, name)
	}
}

// Status is what the core reports of itself.
type Status struct {
	Position *nodev1.ConfigPosition
	Sites    int
	Failed   []*nodev1.FailedEntry
	Warnings []string
}

// Status returns the state of this moment.
func (c *Core) Status() Status {
	c.mu.Lock()
	s := Status{Position: c.position, Sites: c.Tables().Sites(), Failed: c.failedEntries()}
	failing := len(c.state.failed)
	c.mu.Unlock()
	if failing > maxReportedFailures {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d entries fail, %d are listed", failing, maxReportedFailures))
	}
	s.Warnings = append(s.Warnings, c.settingWarnings()...)
	c.notesMu.Lock()
	defer c.notesMu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.damages)) {
		s.Warnings = append(s.Warnings, c.damages[name].text)
	}
	if a, b := c.nodeIDs[configJournal], c.nodeIDs[bansJournal]; a != "" && b != "" && a != b {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the journals are of different nodes: %s and %s", a, b))
	}
	return s
}

// settingWarnings names settings that do not do what they seem to.
func (c *Core) settingWarnings() []string {
	var warnings []string
	tables := c.Tables()
	if tables.ClientIP.Mode == configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL && c.AnyProxyPeer.Load() {
		warnings = append(warnings, "proxy_protocol mode without proxy peers: whoever connects can name any client address")
	}
	const site = configv1.UnknownHostAction_UNKNOWN_HOST_ACTION_SITE
	if (tables.Unknown.Host == site || tables.Unknown.Address == site) && tables.DefaultSite() == nil {
		warnings = append(warnings, fmt.Sprintf("site %q for unknown hosts is missing or disabled: they get the page", tables.Unknown.DefaultSiteID))
	}
	return warnings
}

func (c *Core) logPanic(doing string, p any) {
	c.log.Error("panic contained", zap.String("doing", doing), zap.Any("panic", p), zap.Stack("stack"))
}

// The core of the process.
var (
	processMu   sync.Mutex
	processCore *Core
	processOpts Options
)

// errOptions says that a later configuration asked for another core than the one that runs.
var errOptions = errors.New("state_dir, ban_capacity, ban_max_mib and challenge_replay_mib cannot change while the process runs")

// process returns the core of this process, made at the first call.
func process(o Options) (*Core, error) {
	processMu.Lock()
	defer processMu.Unlock()
	if processCore == nil {
		processCore, processOpts = New(o), o
		go processCore.Stats.run(nil)
		go processCore.CC.Run(nil)
		return processCore, nil
	}
	if o.StateDir != processOpts.StateDir || o.BanCapacity != processOpts.BanCapacity || o.BanMaxBytes != processOpts.BanMaxBytes ||
		o.ChallengeReplayBytes != processOpts.ChallengeReplayBytes {
		return nil, errOptions
	}
	return processCore, nil
}
