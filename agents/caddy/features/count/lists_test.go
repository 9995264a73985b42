package count

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// places is a database of a few addresses.
type places map[netip.Addr]exchange.Place

func (p places) Country(addr netip.Addr) (string, bool) { return p[addr].Country, true }
func (p places) AS(addr netip.Addr) (uint32, string, bool) {
	return p[addr].AS, p[addr].Network, true
}

type visit struct {
	path, referrer string
	client         netip.Addr
}

// visited counts an exchange as the end of one does.
func visited(s *Stats, c *counter, v visit) {
	x := &exchange.Exchange{}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	x.Begin(httptest.NewRecorder(), r)
	x.In.Host, x.In.Target.Raw, x.In.Client = "a.com", v.path, v.client
	if v.referrer != "" {
		x.In.Header.Set("Referer", v.referrer)
	}
	s.lists.count(x, c)
}

// topsOf are the lists of all minutes of a batch that drains now.
func topsOf(s *Stats, list nodev1.TopList) map[string]uint64 {
	found := map[string]uint64{}
	batch := s.Drain(0)
	for _, m := range batch.GetMinutes() {
		for _, top := range m.GetTops() {
			if top.GetList() == list {
				found[m.GetSiteId()+" "+top.GetKey()] += top.GetRequests()
			}
		}
	}
	return found
}

func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func TestListsNameWhatCameMostOnceTheMinuteIsOver(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	germany := netip.MustParseAddr("198.51.100.1")
	stats.lists.geo = func() exchange.Geo {
		return places{germany: {Country: "DE", AS: 64500, Network: "Example\x00 Net"}}
	}
	site := stats.counter("site")
	stats.Settle()
	for range 3 {
		visited(stats, site, visit{"/cart?secret=1", "https://User:pw@News.Example:8443/read?x", germany})
	}
	visited(stats, site, visit{"/other", "", address(1)})
	visited(stats, stats.node, visit{"/of-no-site", "", germany})
	stats.Settle()
	clock.pass(time.Minute)
	stats.Settle()
	batch := stats.Drain(0)
	got := []string{}
	for _, m := range batch.GetMinutes() {
		for _, top := range m.GetTops() {
			got = append(got, fmt.Sprintf("%d %s %s %q %d", m.GetMinute()-startMinute, m.GetSiteId(), strings.TrimPrefix(top.GetList().String(), "TOP_LIST_"), top.GetKey(), top.GetRequests()))
		}
	}
	want := []string{
		`0 site URL "a.com/cart" 3`, `0 site URL "a.com/other" 1`,
		`0 site ADDRESS "198.51.100.1" 3`, `0 site ADDRESS "10.0.0.1" 1`,
		`0 site COUNTRY "DE" 3`, `0 site NETWORK "64500 Example` + "\uFFFD" + ` Net" 3`, `0 site REFERRER "news.example" 3`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAHeavyKeyIsFoundAmongMillionsOfOthers(t *testing.T) {
	var s summary
	hash := func(key string) uint64 { return uint64(len(key))*fibonacci ^ uint64(key[len(key)-1])<<3 }
	heavy := 0
	for n := range 100_000 {
		other := fmt.Sprintf("/%d", n)
		s.count(hash(other), other, "", "", 1)
		if n%10 == 0 {
			s.count(hash("/heavy"), "/heavy", "", "", 2)
			heavy++
		}
	}
	most := s.most(1)[0]
	if string(most.key) != "/heavy" || int(most.requests) > heavy || int(most.requests) < heavy*9/10 || most.bytes != 2*most.requests {
		t.Errorf("%q %d of %d", most.key, most.requests, heavy)
	}
	// What came once is told as once, whatever weight it inherited.
	for _, other := range s.most(summarySlots)[1:] {
		if other.requests > 1 {
			t.Errorf("%q came once, not %d times", other.key, other.requests)
		}
	}
}

// A summary that is never full is exact, and its places stay whole through all that is replaced.
func TestASummaryEqualsAMapWhileItHasRoom(t *testing.T) {
	for seed := range 20 {
		var s summary
		random := uint64(seed) + 1
		counted := map[string]uint64{}
		for range 5_000 {
			random = random*6364136223846793005 + 1442695040888963407
			key := fmt.Sprintf("k%d", random>>33%summarySlots)
			// Few hashes: keys lie behind each other.
			s.count(uint64(key[len(key)-1])*31, key[:1], key[1:], "", 0)
			counted[key]++
		}
		for _, found := range s.most(summarySlots) {
			if found.requests != counted[string(found.key)] {
				t.Fatalf("%q: %d, not %d", found.key, found.requests, counted[string(found.key)])
			}
			delete(counted, string(found.key))
		}
		if len(counted) > 0 {
			t.Fatalf("missing: %v", counted)
		}
		for n := range 5_000 {
			random = random*6364136223846793005 + 1442695040888963407
			key := fmt.Sprintf("r%d", random>>33%500)
			s.count(random>>40%7, key, "", "", 0)
			places := 0
			for _, place := range s.places {
				if place != 0 {
					places++
				}
			}
			if places != summarySlots {
				t.Fatalf("%d places after %d replacements", places, n)
			}
		}
	}
}

func TestHostileTextIsCutAndMadeValid(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	site := stats.counter("site")
	stats.Settle()
	long := strings.Repeat("ä", 4096)
	for n, hostile := range []string{"/\xff\xfe", "/nul\x00l", "/" + long, "/line\r\nbreak\u202e", "/\xc3", "", "?"} {
		visited(stats, site, visit{hostile, "http://" + hostile[min(len(hostile), 1):], address(n)})
		visited(stats, site, visit{"/ok", "x://[::1]:80/" + hostile, address(n)})
	}
	clock.pass(time.Minute)
	stats.Settle()
	texts := 0
	for _, m := range stats.Drain(0).GetMinutes() {
		for _, top := range m.GetTops() {
			texts++
			key := top.GetKey()
			if !utf8.ValidString(key) || len(key) > maxURL || key == "" || strings.ContainsAny(key, "\x00\r\n\u202e") {
				t.Errorf("%v %q", top.GetList(), key)
			}
		}
	}
	if texts < 15 {
		t.Errorf("only %d texts", texts)
	}
}

func TestListsAreBounded(t *testing.T) {
	clock := &fakeClock{start}
	stats := statsIn(t, t.TempDir(), clock)
	stats.Settle()
	busy := stats.counter("busy")
	for n := range 2000 {
		visited(stats, busy, visit{fmt.Sprintf("/%d", n), fmt.Sprintf("https://r%d.example/", n), address(n)})
	}
	for site := range maxListed + 50 {
		c := stats.counter(fmt.Sprintf("s%03d", site))
		for n := range 30 {
			visited(stats, c, visit{fmt.Sprintf("/%d", n), fmt.Sprintf("https://r%d.example/", n), address(n)})
		}
	}
	clock.pass(time.Minute)
	stats.Settle()
	entries := map[string]int{}
	all := 0
	var acknowledged uint64
	for batch := stats.Drain(0); batch.GetSequence() != 0; batch = stats.Drain(acknowledged) {
		acknowledged = batch.GetSequence()
		for _, m := range batch.GetMinutes() {
			entries[m.GetSiteId()] += len(m.GetTops())
			all += len(m.GetTops())
		}
	}
	if entries["busy"] != 60 || all > maxMinuteEntries || all < maxMinuteEntries-60 {
		t.Errorf("%d of the busiest site, %d of all", entries["busy"], all)
	}
	if len(stats.lists.listed) != maxListed {
		t.Errorf("%d sites have lists", len(stats.lists.listed))
	}
	// Who was asked for nothing for a minute has none any more.
	clock.pass(time.Minute)
	stats.Settle()
	if len(stats.lists.listed) != 0 || busy.lists.Load() != nil {
		t.Errorf("%d sites have lists", len(stats.lists.listed))
	}
}

func TestListsOfAKilledProcessAreInItsSegment(t *testing.T) {
	clock := &fakeClock{start}
	folder := t.TempDir()
	stats := statsIn(t, folder, clock)
	site := stats.counter("site")
	stats.Settle()
	visited(stats, site, visit{"/a", "", address(1)})
	clock.pass(time.Minute)
	stats.Settle()
	next := statsIn(t, folder, clock)
	if got := topsOf(next, nodev1.TopList_TOP_LIST_URL); got["site a.com/a"] != 1 {
		t.Errorf("%v", got)
	}
}
