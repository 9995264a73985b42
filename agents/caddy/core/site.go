package core

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"unsafe"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// siteKind is the kind of entries that make a site. Its names are the core's business, all else of it the features'.
const siteKind = "site"

func init() {
	kindNamed(siteKind).decodes(decoder[*configv1.Site]())
	SwitchesOf(siteKind, func(running, received *configv1.Site) *configv1.Site {
		if running == nil {
			return nil
		}
		next := proto.CloneOf(running)
		next.Disabled = received.GetDisabled()
		return next
	})
}

// site is what the core keeps of one version of a site: where its plan gets its parts from. It is immutable.
type site struct {
	plan        exchange.Plan
	core        *Core
	createdAtMs int64
	names       []siteName
	patterns    []*pattern
	// Sorted by kind; the one of the site's own kind is among them.
	entries []partEntry
}

// partEntry is an entry that parts of a site come from.
type partEntry struct {
	kind *kind
	hash [sha256.Size]byte
	body []byte
	// from is the version received that this was made of, by the switches of a newer one; nil: it was received as it is.
	from *received
}

// received is a version of an entry as it came; none: there was none.
type received struct {
	hash [sha256.Size]byte
	body []byte
	none bool
}

// version returns the entry as it was received, nil when it was not.
func (p *partEntry) version() *received {
	switch {
	case p == nil || p.from != nil && p.from.none:
		return nil
	case p.from != nil:
		return p.from
	}
	return &received{hash: p.hash, body: p.body}
}

// siteOf returns what the core keeps of a plan.
func siteOf(p *exchange.Plan) *site { return p.Source().(*site) }

// HasEntry reports whether a site has an entry of a kind that parts of sites come from. It compiles nothing.
func HasEntry(p *exchange.Plan, kind string) bool {
	return entryOf(siteOf(p).entries, kinds[kind]) != nil
}

func entryOf(entries []partEntry, k *kind) *partEntry {
	for i := range entries {
		if entries[i].kind == k {
			return &entries[i]
		}
	}
	return nil
}

// withEntry and withoutEntry copy: others may hold the list.
func withEntry(entries []partEntry, entry partEntry) []partEntry {
	next := make([]partEntry, 0, len(entries)+1)
	for _, other := range entries {
		if other.kind != entry.kind {
			next = append(next, other)
		}
	}
	at, _ := slices.BinarySearchFunc(next, entry.kind.name, func(e partEntry, name string) int {
		return bytes.Compare([]byte(e.kind.name), []byte(name))
	})
	return slices.Insert(next, at, entry)
}

func withoutEntry(entries []partEntry, k *kind) []partEntry {
	next := make([]partEntry, 0, len(entries))
	for _, other := range entries {
		if other.kind != k {
			next = append(next, other)
		}
	}
	return next
}

func sameEntries(a, b []partEntry) bool {
	return slices.EqualFunc(a, b, func(a, b partEntry) bool {
		return a.kind == b.kind && a.hash == b.hash && (a.from == b.from || a.from != nil && b.from != nil && a.from.hash == b.from.hash)
	})
}

// CompilePart makes a part of the plan at its first use.
func (s *site) CompilePart(_ *exchange.Plan, index int) unsafe.Pointer {
	k := kindOfPart[index]
	entry := entryOf(s.entries, k)
	if entry == nil {
		return nil
	}
	m, err := k.message(entry.body)
	if err == nil {
		for _, part := range k.parts {
			if part.index == index {
				var v unsafe.Pointer
				if v, err = part.compile(s.core, s.plan.SiteID, m); err == nil {
					return v
				}
			}
		}
	}
	// What was applied compiled then.
	s.core.log.Error("a settings entry of a site does not compile", zap.String("site", s.plan.SiteID), zap.String("kind", k.name), zap.Error(err))
	return nil
}

// compileParts checks an entry by compiling all that comes from it, which is thrown away.
func (k *kind) compileParts(c *Core, id string, body []byte, hash [sha256.Size]byte) (Change, error) {
	if id == "" {
		return nil, fmt.Errorf("an entry of kind %q needs the id of its site", k.name)
	}
	if serving := PlanOfSite(c.Tables(), id); serving != nil {
		if known := entryOf(siteOf(serving).entries, k); known != nil && known.hash == hash && known.from == nil {
			return func(e *Edit) { e.putPart(id, *known, siteOf(serving), serving) }, nil
		}
	}
	m, err := k.message(body)
	if err != nil {
		return nil, err
	}
	read, err := k.check(c, id, m)
	if err != nil {
		return nil, err
	}
	return func(e *Edit) { e.putPart(id, partEntry{kind: k, hash: hash, body: body}, read, nil) }, nil
}

// check compiles all that comes from an entry, and returns what the core itself reads of it.
func (k *kind) check(c *Core, id string, m proto.Message) (*site, error) {
	read := new(site)
	if k.name == siteKind {
		if err := read.read(m.(*configv1.Site)); err != nil {
			return nil, err
		}
	}
	for _, part := range k.parts {
		if _, err := part.compile(c, id, m); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// read takes what the core itself needs of a site.
func (s *site) read(message *configv1.Site) error {
	s.plan.Disabled, s.createdAtMs = message.GetDisabled(), message.GetCreatedAtMs()
	s.names = make([]siteName, 0, len(message.GetDomains()))
	for i, d := range message.GetDomains() {
		switch d.GetForm() {
		case configv1.DomainForm_DOMAIN_FORM_EXACT, configv1.DomainForm_DOMAIN_FORM_WILDCARD, configv1.DomainForm_DOMAIN_FORM_SUFFIX:
			if host, kind := NormalizeHost(d.GetName()); kind == HostInvalid || host != d.GetName() {
				return fmt.Errorf("domain %q is not a lower-case host name", d.GetName())
			}
			s.names = append(s.names, siteName{d.GetForm(), d.GetName()})
		case configv1.DomainForm_DOMAIN_FORM_PATTERN:
			p, err := compilePattern(d.GetName(), i)
			if err != nil {
				return err
			}
			s.patterns = append(s.patterns, p)
		default:
			return fmt.Errorf("domain %q has form %d, which needs a capability that this node does not have", d.GetName(), d.GetForm())
		}
	}
	return nil
}

// putPart makes an entry the current one of its kind for a site. read has what the core read of it, where it is the
// site's own. from, when not nil, is a plan whose parts of this kind come from the same entry.
func (e *Edit) putPart(id string, entry partEntry, read *site, from *exchange.Plan) {
	old := PlanOfSite(e.Tables, id)
	own := entry.kind.name == siteKind
	if old == nil && !own {
		e.state.waiting[id] = withEntry(e.state.waiting[id], entry)
		return
	}
	number, entries := e.takeOver(id, old)
	if !own {
		read = siteOf(old)
	}
	next := e.version(id, number, read, withEntry(entries, entry), old, entry.kind, from)
	if own {
		e.placeNamed(next, old)
	} else {
		e.Tables.SetPlan(number, &next.plan)
	}
}

// takeOver answers the number of a site and its entries: those of old, or where it is nil a new one and what waited for
// the site.
func (e *Edit) takeOver(id string, old *exchange.Plan) (uint32, []partEntry) {
	if old != nil {
		return old.Number, siteOf(old).entries
	}
	entries := e.state.waiting[id]
	delete(e.state.waiting, id)
	return e.takeNumber(id), entries
}

// placeNamed puts a version of a site in the place of old, which is nil for a new one, with the names it has.
func (e *Edit) placeNamed(next *site, old *exchange.Plan) {
	for _, p := range next.patterns {
		p.belongTo(next)
	}
	if old != nil {
		e.removeNames(siteOf(old))
	}
	e.Tables.SetPlan(next.plan.Number, &next.plan)
	if old == nil {
		names := e.names()
		names.ids = names.ids.Set(e.Owner(), next.plan.SiteID, next.plan.Number)
	}
	e.addNames(next)
}

// version makes a version of a site: the one that serves, where that is of the same entries; else one that keeps all
// parts of old but those of the kind that changed. read has what the core read of the site.
func (e *Edit) version(id string, number uint32, read *site, entries []partEntry, old *exchange.Plan, changed *kind, from *exchange.Plan) *site {
	serving := e.published.Plan(number)
	if serving != nil && serving.SiteID != id {
		serving = nil
	}
	if serving != nil && !serving.Unserved && !serving.Unguarded && sameEntries(siteOf(serving).entries, entries) {
		return siteOf(serving)
	}
	before := old
	if before == nil {
		before = serving
	}
	next := &site{core: e.Core, createdAtMs: read.createdAtMs, names: read.names, patterns: read.patterns, entries: entries}
	next.plan.Init(id, number, read.plan.Disabled, next, before)
	if old != nil {
		next.plan.Inherit(old, func(index int) bool { return kindOfPart[index] != changed })
	}
	if from != nil {
		next.plan.Inherit(from, func(index int) bool { return kindOfPart[index] == changed })
	}
	return next
}

// removePart takes an entry from its site; without its own entry a site is gone, and what else was said of it waits.
func (e *Edit) removePart(k *kind, id string) {
	old := PlanOfSite(e.Tables, id)
	if old == nil {
		if rest := withoutEntry(e.state.waiting[id], k); len(rest) > 0 {
			e.state.waiting[id] = rest
		} else {
			delete(e.state.waiting, id)
		}
		return
	}
	known := siteOf(old)
	if entryOf(known.entries, k) == nil && k.name != siteKind {
		return
	}
	rest := withoutEntry(known.entries, k)
	if k.name != siteKind {
		e.Tables.SetPlan(old.Number, &e.version(id, old.Number, known, rest, old, k, nil).plan)
		return
	}
	e.removeNames(known)
	names := e.names()
	names.ids = names.ids.Delete(e.Owner(), id)
	e.Tables.SetPlan(old.Number, nil)
	e.giveBackNumber(old.Number)
	if len(rest) > 0 {
		e.state.waiting[id] = rest
	}
}

// runningPart returns the hash of the entry that serves, nil when there is none.
func (c *Core) runningPart(k *kind, id string) []byte {
	entries := c.state.waiting[id]
	if plan := PlanOfSite(c.Tables(), id); plan != nil {
		entries = siteOf(plan).entries
	}
	if version := entryOf(entries, k).version(); version != nil {
		return version.hash[:]
	}
	return nil
}
