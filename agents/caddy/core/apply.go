package core

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// ErrBase says that a change starts from another position than the one held; nothing was changed.
var ErrBase = errors.New("the configuration change does not start at the current position")

const (
	maxReportedFailures = 1000
	maxReasonBytes      = 500
	failingPage         = 10_000
)

// failure is an entry that was received and could not be compiled; its previous version, if any, keeps serving.
type failure struct {
	received [sha256.Size]byte
	reason   string
	// The entry, where it may compile later; see Later.
	entry *configv1.Entry
	// Whether it keeps out what must not pass.
	guards bool
}

// compiled is an entry after the first phase.
type compiled struct {
	key   entryKey
	hash  [sha256.Size]byte
	body  []byte
	apply Change
	err   error
	// The entry, where it may compile later.
	later *configv1.Entry
}

func (c *Core) compile(entry *configv1.Entry) compiled {
	body := entry.GetBody()
	out := compiled{key: entryKey{entry.GetKind(), entry.GetId()}, hash: sha256.Sum256(body), body: body}
	out.apply, out.err = c.compileContained(entry, out.hash)
	if errors.As(out.err, new(laterError)) {
		out.later = entry
	}
	return out
}

// compileContained turns a panic of a compiler into a failure of the one entry.
func (c *Core) compileContained(entry *configv1.Entry, hash [sha256.Size]byte) (a Change, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = nil, errors.New("a fault in svc-caddy stopped the compilation of the entry (a panic; the log has its stack)")
			c.LogPanic("compiling an entry", p)
		}
	}()
	return c.compileEntry(entry, hash)
}

// Apply moves the configuration from base to target. Every entry is compiled first; then all that compiled take effect
// at once. An entry that does not compile fails alone, one that needs what this node lacks is lacking; `unserved` are those
// that came before the node served their site. It fails with ErrBase when base is not the position held.
func (c *Core) Apply(base, target *nodev1.ConfigPosition, upserts []*configv1.Entry, deletes []*configv1.EntryKey, unserved ...*configv1.EntryKey) (*nodev1.ConfigPosition, []*nodev1.FailedEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !samePosition(base, c.position) {
		return nil, nil, ErrBase
	}
	ready := make([]compiled, len(upserts))
	for i, entry := range upserts {
		ready[i] = c.compile(entry)
	}
	published := c.tables.Load()
	e := &Edit{Core: c, Tables: published.Clone(), state: c.state, published: published}
	for _, entry := range ready {
		e.put(entry)
	}
	for _, key := range deletes {
		e.delete(entryKey{key.GetKind(), key.GetId()})
	}
	e.markUnserved(unserved)
	e.settle()
	e.settleServed()
	c.publish(e.Tables)
	c.position = proto.CloneOf(target)
	c.Followed(configJournal)
	return c.position, c.failedEntries(), nil
}

// ReloadConfig reads the configuration journal and swaps to what it says. It fails with ErrJournal, changing nothing,
// when the journal does not say it.
func (c *Core) ReloadConfig() (*nodev1.ConfigPosition, []*nodev1.FailedEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.readConfig(false); err != nil {
		return nil, nil, err
	}
	return c.position, c.failedEntries(), nil
}

// readConfig takes the configuration journal over. A new process has nothing to lose: it takes what can be read.
func (c *Core) readConfig(isNew bool) error {
	e := &Edit{Core: c, Tables: exchange.NewTables(), state: newWriterState(), published: c.tables.Load(), whole: true}
	e.state.nextNumber = c.state.nextNumber
	position := &nodev1.ConfigPosition{}
	var r Reading
	r.Header, r.Damage = ReadJournal(filepath.Join(c.stateDir, configJournal), func(record *edgev1.JournalRecord) {
		change := record.GetConfig()
		for _, entry := range change.GetUpserts() {
			e.put(c.compile(entry))
		}
		for _, key := range change.GetDeletes() {
			e.delete(entryKey{key.GetKind(), key.GetId()})
		}
		e.markUnserved(change.GetUnserved())
		e.settle()
		if change.GetPosition() != nil {
			position = proto.CloneOf(change.GetPosition())
			r.Stated = true
		}
	})
	holds := c.position.GetRevision() != 0 || len(c.state.running) > 0 || SiteCount(c.Tables()) > 0
	if err := c.Judge(configJournal, &r, isNew, holds); err != nil {
		return err
	}
	e.settleServed()
	e.settleNumbers()
	c.publish(e.Tables)
	c.state = e.state
	c.position = position
	return nil
}

func (e *Edit) put(entry compiled) {
	e.forget(entry.key)
	if entry.err != nil {
		var lack lackError
		if errors.As(entry.err, &lack) {
			e.markLacking(entry.key)
		} else {
			e.state.failed[entry.key] = &failure{received: entry.hash, reason: reasonText(entry.err), entry: entry.later, guards: guarding(entry)}
			e.judgeGuarded(entry.key.id)
		}
		e.takeSwitches(entry.key, entry.body)
		return
	}
	entry.apply(e)
	if !kinds[entry.key.kind].partOfSites() {
		e.state.running[entry.key] = entry.hash
	}
}

func (e *Edit) delete(key entryKey) {
	if k, ok := kinds[key.kind]; ok {
		k.remove(e, key.id)
	}
	e.forget(key)
	delete(e.state.running, key)
}

// settle lets features see that a whole change is in the edit.
func (e *Edit) settle() {
	for _, settle := range settlers {
		settle(e)
	}
}

// forget forgets what was wrong with the newest version of a key.
func (e *Edit) forget(key entryKey) {
	e.judgeGuarded(key.id)
	delete(e.state.failed, key)
	e.letGo(key)
}

// failedEntries lists the entries that fail now, sorted, at most 1000.
func (c *Core) failedEntries() []*nodev1.FailedEntry {
	if len(c.state.failed) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(c.state.failed), func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	keys = keys[:min(len(keys), maxReportedFailures)]
	list := make([]*nodev1.FailedEntry, len(keys))
	for i, key := range keys {
		f := c.state.failed[key]
		list[i] = &nodev1.FailedEntry{
			Kind: key.kind, Id: key.id, ReceivedHash: f.received[:], RunningHash: c.runningHash(key), Reason: f.reason,
		}
	}
	return list
}

func compareKeys(a, b entryKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// Failing lists the keys that fail now or are lacking, with what runs instead, sorted, at most 10000 of those after a key
// (nil: from the first), whether there are more, and the position of which that is true.
func (c *Core) Failing(after *configv1.EntryKey) (*nodev1.ConfigPosition, []*edgev1.FailingEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.AppendSeq(slices.Collect(maps.Keys(c.state.failed)), maps.Keys(c.state.lacking))
	slices.SortFunc(keys, compareKeys)
	if after != nil {
		at, found := slices.BinarySearchFunc(keys, entryKey{after.GetKind(), after.GetId()}, compareKeys)
		if found {
			at++
		}
		keys = keys[at:]
	}
	more := len(keys) > failingPage
	keys = keys[:min(len(keys), failingPage)]
	list := make([]*edgev1.FailingEntry, len(keys))
	for i, key := range keys {
		list[i] = &edgev1.FailingEntry{Key: &configv1.EntryKey{Kind: key.kind, Id: key.id}, RunningHash: c.runningHash(key)}
	}
	return c.position, list, more
}

func (c *Core) runningHash(key entryKey) []byte {
	if k := kinds[key.kind]; k != nil && k.partOfSites() {
		return c.runningPart(k, key.id)
	}
	if hash, ok := c.state.running[key]; ok {
		return hash[:]
	}
	return nil
}

// reasonText bounds a reason and makes it text that protobuf can carry.
func reasonText(err error) string {
	s := strings.ToValidUTF8(err.Error(), "�")
	if len(s) <= maxReasonBytes {
		return s
	}
	s = s[:maxReasonBytes]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

func samePosition(a, b *nodev1.ConfigPosition) bool {
	return a.GetEpoch() == b.GetEpoch() && a.GetTrack() == b.GetTrack() && a.GetRevision() == b.GetRevision() &&
		bytes.Equal(a.GetSetHash(), b.GetSetHash())
}
