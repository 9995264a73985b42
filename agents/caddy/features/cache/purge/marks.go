// Package purge has the marks of purges: what was stored for a request that left for its origin before a mark that concerns it
// is absent, whatever else is known of it. A purge deletes no file, and costs the same whatever is stored.
//
// A mark has a position in the feed of purges, an epoch and a sequence number. A stored response has the position that its
// request left with. The marks of a site are bounded: beyond 1,000 URLs, prefixes and hosts, or 5,000 tags, the oldest half of
// them becomes one floor, below which everything of the site is absent. So much is purged that need not be, and never less.
//
// A File keeps the marks across restarts. Where it cannot be read, or is of another cluster, a new generation begins:
// everything that was stored before is absent.
package purge

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"edge.svc/caddy/features/cache/store"
)

// Kind says what a mark concerns.
type Kind uint8

// The kinds.
const (
	Site Kind = iota
	// URL is one path of a host, with any query; with HasQuery with that query alone.
	URL
	// Prefix is all paths of a host that begin so.
	Prefix
	// Host is all of a host.
	Host
	// Tag is what has a tag.
	Tag
)

// Mark is a purge. Host "" is any host of the site.
type Mark struct {
	store.Position
	Kind       Kind
	Site, Host string
	// Path is that of a URL, without its query, or a prefix.
	Path string
	// Query is that of a URL. With HasQuery, what has another one is left alone; Stored.Key says which are the same.
	Query    string
	HasQuery bool
	// Tag is in lower case.
	Tag string
}

// Most marks of a site.
const (
	MaxPaths = 1000
	MaxTags  = 5000
)

// Marks are all marks of a node. A site without marks costs one load of a map.
type Marks struct {
	// Serializes changes.
	mu sync.Mutex
	// By the id of a site, a *site.
	sites sync.Map
	at    atomic.Pointer[store.Position]
}

// site has the marks of one site.
type site struct {
	mu sync.RWMutex
	// Everything before is absent. newest is the position of the newest mark.
	floor, newest store.Position
	// By host and path, each with the marks of that path, and by tag.
	urls, prefixes map[string][]Mark
	tags           map[string]store.Position
	// How many prefixes there are of each length.
	lengths map[int]int
	// Hosts of URLs and prefixes.
	hosts map[string]struct{}
	paths int
}

func newSite() *site {
	return &site{urls: map[string][]Mark{}, prefixes: map[string][]Mark{}, tags: map[string]store.Position{}, lengths: map[int]int{}, hosts: map[string]struct{}{}}
}

// New makes marks for a node that knows of no purge.
func New() *Marks {
	m := &Marks{}
	m.at.Store(&store.Position{})
	return m
}

// Position is that of the newest mark: a request leaves for its origin with it.
func (m *Marks) Position() store.Position { return *m.at.Load() }

// Add adds marks. One that is known already changes nothing.
func (m *Marks) Add(marks ...Mark) { m.AddUpTo(store.Position{}, marks...) }

// AddUpTo adds marks, and says that there are all up to a place.
func (m *Marks) AddUpTo(place store.Position, marks ...Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.Position()
	if at.Before(place) {
		at.Epoch, at.Sequence = place.Epoch, place.Sequence
	}
	for i := range marks {
		m.newSite(marks[i].Site).add(marks[i])
		if at.Before(marks[i].Position) {
			at.Epoch, at.Sequence = marks[i].Epoch, marks[i].Sequence
		}
	}
	// Last: a request that has this position meets these marks.
	m.at.Store(&at)
}

// Begin forgets all marks, and begins a generation: what is of another one is absent.
func (m *Marks) Begin(generation uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at.Store(&store.Position{Generation: generation})
	m.sites.Clear()
}

// Each calls f with the marks of one site after another.
func (m *Marks) Each(f func(marks []Mark) error) (err error) {
	m.sites.Range(func(id, s any) bool {
		err = f(s.(*site).all(id.(string)))
		return err == nil
	})
	return err
}

// all returns the marks of a site.
func (s *site) all(id string) (marks []Mark) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.floor != (store.Position{}) {
		marks = append(marks, Mark{Position: s.floor, Kind: Site, Site: id})
	}
	for _, of := range []map[string][]Mark{s.urls, s.prefixes} {
		for _, list := range of {
			marks = append(marks, list...)
		}
	}
	for tag, position := range s.tags {
		marks = append(marks, Mark{Position: position, Kind: Tag, Site: id, Tag: tag})
	}
	return marks
}

// site returns the marks of a site, nil where it has none.
func (m *Marks) site(id string) *site {
	if s, ok := m.sites.Load(id); ok {
		return s.(*site)
	}
	return nil
}

// newSite returns the marks of a site, which may be new. The caller holds the lock.
func (m *Marks) newSite(id string) *site {
	s := m.site(id)
	if s == nil {
		s = newSite()
		m.sites.Store(id, s)
	}
	return s
}

func pathKey(host, path string) string { return host + "\x00" + path }

func (s *site) add(m Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest.Before(m.Position) {
		s.newest = m.Position
	}
	switch m.Kind {
	case Site:
		if s.floor.Before(m.Position) {
			s.floor = m.Position
		}
	case Tag:
		if s.tags[m.Tag].Before(m.Position) {
			s.tags[m.Tag] = m.Position
		}
	case Host:
		s.addPath(s.prefixes, Mark{Position: m.Position, Kind: Prefix, Site: m.Site, Host: m.Host})
	case Prefix:
		s.addPath(s.prefixes, m)
	case URL:
		s.addPath(s.urls, m)
	}
	if m.Kind == Site || s.paths > MaxPaths || len(s.tags) > MaxTags {
		s.bound()
	}
}

func (s *site) addPath(to map[string][]Mark, m Mark) {
	key := pathKey(m.Host, m.Path)
	list := to[key]
	for i := range list {
		if list[i].HasQuery == m.HasQuery && list[i].Query == m.Query {
			if list[i].Position.Before(m.Position) {
				list[i].Position = m.Position
			}
			return
		}
	}
	to[key] = append(list, m)
	s.hosts[m.Host] = struct{}{}
	if s.paths++; m.Kind == Prefix && len(list) == 0 {
		s.lengths[len(key)]++
	}
}

// bound makes the oldest half of the marks the floor where there are too many.
func (s *site) bound() {
	if s.paths > MaxPaths {
		var positions []store.Position
		for _, of := range []map[string][]Mark{s.urls, s.prefixes} {
			for _, list := range of {
				for i := range list {
					positions = append(positions, list[i].Position)
				}
			}
		}
		s.raise(positions)
	}
	if len(s.tags) > MaxTags {
		positions := make([]store.Position, 0, len(s.tags))
		for _, position := range s.tags {
			positions = append(positions, position)
		}
		s.raise(positions)
	}
	s.forget()
}

func (s *site) raise(positions []store.Position) {
	slices.SortFunc(positions, func(a, b store.Position) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		}
		return 0
	})
	if middle := positions[len(positions)/2]; s.floor.Before(middle) {
		s.floor = middle
	}
}

// forget removes what the floor says as well.
func (s *site) forget() {
	clear(s.hosts)
	for _, of := range []map[string][]Mark{s.urls, s.prefixes} {
		for key, list := range of {
			prefix := list[0].Kind == Prefix
			kept := slices.DeleteFunc(list, func(m Mark) bool { return !s.floor.Before(m.Position) })
			s.paths -= len(list) - len(kept)
			if len(kept) > 0 {
				s.hosts[kept[0].Host] = struct{}{}
			}
			if of[key] = kept; len(kept) == 0 {
				delete(of, key)
			}
			if len(kept) == 0 && prefix {
				if s.lengths[len(key)]--; s.lengths[len(key)] == 0 {
					delete(s.lengths, len(key))
				}
			}
		}
	}
	for tag, position := range s.tags {
		if !s.floor.Before(position) {
			delete(s.tags, tag)
		}
	}
}

// Stored is what marks compare of a response.
type Stored struct {
	Position         store.Position
	Site, Host, Path string
	// Query is that of the key.
	Query string
	Tags  []string
	// AnyHost says that the key leaves out the host: a mark of any host of the site concerns the response.
	AnyHost bool
	// Key makes of the query of a URL the one of the key; nil where they are the same.
	Key interface{ QueryOf(query string) string }
}

// Absent reports whether a mark concerns a response.
func (m *Marks) Absent(r *Stored) bool {
	if r.Position.Generation != m.at.Load().Generation {
		return true
	}
	s := m.site(r.Site)
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !r.Position.Before(s.newest) {
		return false
	}
	if r.Position.Before(s.floor) || s.matches(r, r.Host) || s.matches(r, "") {
		return true
	}
	if r.AnyHost {
		for host := range s.hosts {
			if s.matches(r, host) {
				return true
			}
		}
	}
	for _, tag := range r.Tags {
		if r.Position.Before(s.tags[tag]) {
			return true
		}
	}
	return false
}

// matches compares the marks of a host.
func (s *site) matches(r *Stored, host string) bool {
	key := pathKey(host, r.Path)
	for _, m := range s.urls[key] {
		if r.Position.Before(m.Position) && (!m.HasQuery || r.has(m.Query)) {
			return true
		}
	}
	for n := range s.lengths {
		if n > len(key) {
			continue
		}
		for _, m := range s.prefixes[key[:n]] {
			if r.Position.Before(m.Position) {
				return true
			}
		}
	}
	return false
}

// has reports whether the response has a query, or one that decodes to the same.
func (r *Stored) has(query string) bool {
	if r.Key != nil {
		query = r.Key.QueryOf(query)
	}
	return query == r.Query || decoded(query) == decoded(r.Query)
}

func decoded(query string) string {
	if text, err := url.QueryUnescape(query); err == nil {
		return text
	}
	return query
}

// Counts are how many marks a site has, for metrics and tests.
func (m *Marks) Counts(siteID string) (paths, tags int, floor store.Position) {
	if s := m.site(siteID); s != nil {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.paths, len(s.tags), s.floor
	}
	return 0, 0, store.Position{}
}

const (
	maxTagBytes  = 128
	maxTagsBytes = 4096
)

// Tags are those of the lines of Cache-Tag: of the first 4,096 bytes, in lower case, each once, none of more than 128 bytes or
// with characters that cannot be printed. An element that the bound cuts is left out.
func Tags(lines []string) (tags []string) {
	joined := strings.Join(lines, ",")
	if len(joined) > maxTagsBytes {
		joined = joined[:strings.LastIndexByte(joined[:maxTagsBytes+1], ',')+1]
	}
	for tag := range strings.SplitSeq(joined, ",") {
		tag = strings.ToLower(strings.Trim(tag, " \t"))
		if tag != "" && len(tag) <= maxTagBytes && printable(tag) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
