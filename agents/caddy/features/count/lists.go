package count

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	// Sites that have lists in one minute; those that come first have the most traffic, but for chance.
	maxListed = 512
	// Entries of all lists of all sites of one minute, those of the busiest sites.
	maxMinuteEntries = 10_000
	// Bytes of a key.
	maxURL, maxReferrer = 512, 253
	listKinds           = int(nodev1.TopList_TOP_LIST_REFERRER)
)

// listed is how many entries each list has at most.
var listed = [listKinds + 1]int{
	nodev1.TopList_TOP_LIST_URL: 20, nodev1.TopList_TOP_LIST_ADDRESS: 20, nodev1.TopList_TOP_LIST_COUNTRY: summarySlots,
	nodev1.TopList_TOP_LIST_NETWORK: 20, nodev1.TopList_TOP_LIST_REFERRER: 20,
}

func init() { core.RegisterCapability("top-lists-v1") }

// lists are what a site was asked for most in the running minute, and by whom.
type lists struct {
	mu       sync.Mutex
	requests uint64
	of       [listKinds + 1]summary
}

// topLists has the lists of all sites.
type topLists struct {
	seed maphash.Seed
	geo  func() exchange.Geo
	// Where clients are, for a minute: the databases take longer than all that is counted.
	places atomic.Pointer[knownPlaces]
	missed atomic.Uint32

	full   atomic.Bool
	mu     sync.Mutex
	listed []*counter
	// Only who flushes reads it.
	minute int64
}

const knownClients = 4096

type knownPlaces [knownClients]atomic.Pointer[knownPlace]

type knownPlace struct {
	client netip.Addr
	place  exchange.Place
}

func newTopLists(geo func() exchange.Geo) *topLists {
	t := &topLists{seed: maphash.MakeSeed(), geo: geo}
	t.places.Store(&knownPlaces{})
	return t
}

// count counts an exchange that ended in the lists of its site.
func (t *topLists) count(x *exchange.Exchange, c *counter) {
	l := c.lists.Load()
	if l == nil {
		if l = t.open(c); l == nil {
			return
		}
	}
	bytes := uint64(max(x.Sent(), 0))
	host, path := x.In.Host, x.In.Target.Raw
	if at := strings.IndexByte(path, '?'); at >= 0 {
		path = path[:at]
	}
	host = host[:min(len(host), maxURL)]
	path = path[:min(len(path), maxURL-len(host))]
	pathHash := bits.RotateLeft64(maphash.String(t.seed, host), 1) ^ maphash.String(t.seed, path)
	address := x.In.Client.As16()
	client := string(address[:])
	clientHash := maphash.String(t.seed, client)
	place := t.placeOf(x, clientHash)
	referrer := referrerOf(x)

	l.mu.Lock()
	l.requests++
	l.of[nodev1.TopList_TOP_LIST_URL].count(pathHash, host, path, "", bytes)
	if x.In.Client.IsValid() {
		l.of[nodev1.TopList_TOP_LIST_ADDRESS].count(clientHash, client, "", "", bytes)
	}
	if place.Country != "" {
		hash := uint64(place.Country[0])<<8 | uint64(place.Country[1])
		l.of[nodev1.TopList_TOP_LIST_COUNTRY].count(hash*fibonacci>>32, place.Country, "", "", bytes)
	}
	if place.AS != 0 {
		var number [4]byte
		binary.BigEndian.PutUint32(number[:], place.AS)
		l.of[nodev1.TopList_TOP_LIST_NETWORK].count(uint64(place.AS)*fibonacci>>32, string(number[:]), "", place.Network, bytes)
	}
	if referrer != "" {
		l.of[nodev1.TopList_TOP_LIST_REFERRER].count(maphash.String(t.seed, referrer), referrer, "", "", bytes)
	}
	l.mu.Unlock()
}

// fibonacci spreads small numbers.
const fibonacci = 0x9e3779b97f4a7c15

// open gives a site lists; nil where as many sites as may be have some.
func (t *topLists) open(c *counter) *lists {
	if t.full.Load() || c.siteID == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := c.lists.Load(); l != nil {
		return l
	}
	if len(t.listed) >= maxListed {
		t.full.Store(true)
		return nil
	}
	l := &lists{}
	c.lists.Store(l)
	t.listed = append(t.listed, c)
	return l
}

// placeOf is where a client is. Those that come often are remembered for the minute.
func (t *topLists) placeOf(x *exchange.Exchange, hash uint64) exchange.Place {
	slot := &t.places.Load()[hash%knownClients]
	known := slot.Load()
	if known != nil && known.client == x.In.Client {
		return known.place
	}
	place := exchange.PlaceOf(x, t.geo())
	if missed := t.missed.Add(1); known == nil || missed%replaceOneIn == 0 {
		slot.Store(&knownPlace{x.In.Client, place})
	}
	return place
}

// referrerOf is the host that a client says it comes from, "" where it says none.
func referrerOf(x *exchange.Exchange) string {
	values := x.In.Header["Referer"]
	if len(values) == 0 {
		return ""
	}
	_, rest, ok := strings.Cut(values[0][:min(len(values[0]), 2*maxURL)], "://")
	if !ok {
		return ""
	}
	if at := strings.IndexAny(rest, `/?#\`); at >= 0 {
		rest = rest[:at]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && strings.IndexByte(rest[at:], ']') < 0 {
		rest = rest[:at]
	}
	return rest[:min(len(rest), maxReferrer)]
}

// topEntry is one of a list.
type topEntry struct {
	list            nodev1.TopList
	key             string
	requests, bytes uint64
}

type listedSite struct {
	siteID   string
	requests uint64
	entries  []topEntry
}

// take empties the lists of all sites, the busiest first, once a minute is over. The minute before the first is none.
func (t *topLists) take(minute int64, put func(siteID string, minute int64, entry topEntry)) {
	before := t.minute
	if minute == before {
		return
	}
	t.minute = minute
	if before == 0 {
		return
	}
	t.places.Store(&knownPlaces{})
	t.mu.Lock()
	var sites []listedSite
	t.listed = slices.DeleteFunc(t.listed, func(c *counter) bool {
		site := c.lists.Load().take(c.siteID)
		if site.requests == 0 {
			// A request that ends just now counts in lists that nobody reads.
			c.lists.Store(nil)
			return true
		}
		sites = append(sites, site)
		return false
	})
	t.full.Store(false)
	t.mu.Unlock()
	slices.SortStableFunc(sites, func(a, b listedSite) int { return cmp.Compare(b.requests, a.requests) })
	left := maxMinuteEntries
	for _, site := range sites {
		for _, entry := range site.entries[:min(len(site.entries), left)] {
			put(site.siteID, before, entry)
		}
		left -= min(len(site.entries), left)
	}
}

func (l *lists) take(siteID string) listedSite {
	l.mu.Lock()
	defer l.mu.Unlock()
	site := listedSite{siteID: siteID, requests: l.requests}
	for list := range l.of {
		for _, found := range l.of[list].most(listed[list]) {
			if key := textOf(nodev1.TopList(list), found); key != "" {
				site.entries = append(site.entries, topEntry{nodev1.TopList(list), key, found.requests, found.bytes})
			}
		}
		l.of[list].reset()
	}
	l.requests = 0
	return site
}

// textOf is a key as the console gets it.
func textOf(list nodev1.TopList, found slot) string {
	switch list {
	case nodev1.TopList_TOP_LIST_ADDRESS:
		return netip.AddrFrom16([16]byte(found.key)).Unmap().String()
	case nodev1.TopList_TOP_LIST_NETWORK:
		return cleaned(strconv.FormatUint(uint64(binary.BigEndian.Uint32(found.key)), 10)+" "+found.label, maxReferrer)
	case nodev1.TopList_TOP_LIST_REFERRER:
		return cleaned(strings.ToLower(string(found.key)), maxReferrer)
	}
	return cleaned(string(found.key), maxURL)
}

// cleaned is text that a message and a database may hold, and a person may read: UTF-8 without control characters, at most
// so many bytes.
func cleaned(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
