package listen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// crowd is a registry with limits, and the connections that came to it in their order.
type crowd struct {
	t       *testing.T
	r       *Registry
	core    *core.Core
	now     time.Time
	members []*Conn
}

func newCrowd(t *testing.T, limits Limits) *crowd {
	c := &crowd{t: t, r: NewRegistry(), core: newCore(t, &configv1.ClientIp{}), now: time.Unix(1000, 0)}
	c.r.limiter.set(limits)
	return c
}

// come has connections of the addresses come one after the other; "" is a trusted proxy. It returns the last one.
func (c *crowd) come(addresses ...string) *Conn {
	c.t.Helper()
	for _, text := range addresses {
		var addr netip.Addr
		if text != "" {
			addr = netip.MustParseAddr(text)
		}
		here, there := net.Pipe()
		conn := &Conn{Conn: here, Peer: addr, core: c.core}
		c.r.add(conn)
		abort(c.r.limiter.enter(conn, addr, c.now), conn)
		c.t.Cleanup(func() { conn.Close(); there.Close() })
		c.members = append(c.members, conn)
	}
	return c.members[len(c.members)-1]
}

// gone are the numbers of those that had to go.
func (c *crowd) gone() (numbers []int) {
	for i, conn := range c.members {
		if conn.isClosed() {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func (c *crowd) expect(what string, refused, evicted map[string]uint64, gone ...int) {
	c.t.Helper()
	now := c.r.Counters()
	if !maps.Equal(now.Refused, refused) || !maps.Equal(now.Evicted, evicted) || !slices.Equal(c.gone(), gone) {
		c.t.Errorf("%s: refused %v, evicted %v, gone %v", what, now.Refused, now.Evicted, c.gone())
	}
}

func times(n int, address string) []string { return slices.Repeat([]string{address}, n) }

func TestWhenRoomIsShortTheNewestOfTheHeaviestNetworkGoes(t *testing.T) {
	c := newCrowd(t, Limits{Connections: 7})
	// Of the heaviest network the heaviest address, and of that the newest: number 3.
	c.come("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1", "198.51.100.1", "198.51.100.1", "203.0.113.1")
	c.come("203.0.113.9")
	c.expect("a newcomer", nil, map[string]uint64{"total": 1}, 3)
	// In the heaviest network it is not the heaviest address.
	c.come("192.0.2.9")
	c.expect("another address of the heaviest network", nil, map[string]uint64{"total": 2}, 1, 3)
	// Of equals it is the newest.
	c.come("192.0.2.10")
	c.expect("one more of the heaviest network", map[string]uint64{"total": 1}, map[string]uint64{"total": 2}, 1, 3, 9)
	// A place that became free is taken by whoever comes.
	c.members[0].Close()
	c.come("192.0.2.9")
	if c.members[10].isClosed() || c.r.Counters().Open != 7 || c.r.Counters().Accepted != 11 {
		t.Errorf("%+v", c.r.Counters())
	}
}

func TestNetworksHaveLimitsAndTrustedProxiesHaveNot(t *testing.T) {
	c := newCrowd(t, Limits{PerAddress: 3, PerNetwork: 4})
	c.come(times(4, "192.0.2.1")...)
	c.expect("an address", map[string]uint64{"address": 1}, map[string]uint64{}, 3)
	c.come("192.0.2.2", "192.0.2.2")
	// The neighbour gets its second place from the address that has more.
	c.expect("a network", map[string]uint64{"address": 1}, map[string]uint64{"network": 1}, 2, 3)
	c.come("192.0.2.2")
	c.expect("a network of equals", map[string]uint64{"address": 1, "network": 1}, map[string]uint64{"network": 1}, 2, 3, 6)
	c.come(times(20, "")...)
	if got := len(c.gone()); got != 3 {
		t.Errorf("%d are gone after a trusted proxy came", got)
	}
	// IPv6 addresses of one /64 are one, those of one /48 a network.
	c = newCrowd(t, Limits{PerAddress: 1, PerNetwork: 2})
	c.come("2001:db8:1::1", "2001:db8:1::2", "2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:2::1")
	c.expect("IPv6", map[string]uint64{"address": 1, "network": 1}, map[string]uint64{}, 1, 3)
}

func TestConnectionsWithoutARequestAreBounded(t *testing.T) {
	c := newCrowd(t, Limits{Waiting: 3, HeaderTime: 10 * time.Second})
	first := c.come("192.0.2.1")
	first.asked()
	first.asked()
	c.come("192.0.2.1", "192.0.2.1", "198.51.100.1")
	c.now = c.now.Add(9 * time.Second)
	c.come("198.51.100.2")
	// It is the newest of the two networks with two each.
	c.expect("too many", map[string]uint64{"waiting": 1}, map[string]uint64{}, 4)
	c.come("203.0.113.1")
	c.expect("a newcomer", map[string]uint64{"waiting": 1}, map[string]uint64{"waiting": 1}, 2, 4)
	if got := c.r.Counters().Waiting; got != 3 {
		t.Errorf("%d wait", got)
	}
	// The head of the first request has its time; who has sent one has none.
	abort(c.r.limiter.expired(c.now.Add(time.Second)), nil)
	c.expect("on time", map[string]uint64{"waiting": 1}, map[string]uint64{"waiting": 1}, 2, 4)
	abort(c.r.limiter.expired(c.now.Add(2*time.Second)), nil)
	c.expect("too late", map[string]uint64{"waiting": 1}, map[string]uint64{"waiting": 1, "header-time": 2}, 1, 2, 3, 4)
	if now := c.r.Counters(); now.Waiting != 1 || now.Open != 2 {
		t.Errorf("%+v", now)
	}
}

// Whatever comes and goes, the ledgers say what a look at all would.
func TestLedgersAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newCrowd(t, Limits{Connections: 60, PerNetwork: 30, PerAddress: 12, Waiting: 40})
	for range 3000 {
		if i := random.IntN(100); i < 60 {
			c.come(fmt.Sprintf("192.0.%d.%d", random.IntN(4), random.IntN(3)))
		} else if open := slices.DeleteFunc(slices.Clone(c.members), (*Conn).isClosed); len(open) > 0 && i < 80 {
			open[random.IntN(len(open))].Close()
		} else if len(open) > 0 {
			open[random.IntN(len(open))].asked()
		}
		open, waiting := 0, 0
		byAddress, byNetwork := map[netip.Addr]int{}, map[netip.Addr]int{}
		for _, conn := range c.members {
			if conn.isClosed() {
				continue
			}
			a, n := keysOf(conn.Peer)
			open++
			byAddress[a]++
			byNetwork[n]++
			if !conn.requested.Load() {
				waiting++
			}
		}
		l := &c.r.limiter
		if l.open != open || l.all.size != open || l.waiting.size != waiting || l.queued != waiting ||
			len(l.all.addresses) != len(byAddress) || len(l.all.networks) != len(byNetwork) {
			t.Fatalf("%d open, %d waiting; told %d, %d", open, waiting, l.open, l.waiting.size)
		}
		heaviest := 0
		for key, n := range l.all.networks {
			heaviest = max(heaviest, byNetwork[key])
			if n.place.weight() != byNetwork[key] {
				t.Fatalf("%s weighs %d, not %d", key, n.place.weight(), byNetwork[key])
			}
		}
		for key, a := range l.all.addresses {
			if a.place.weight() != byAddress[key] {
				t.Fatalf("%s weighs %d, not %d", key, a.place.weight(), byAddress[key])
			}
		}
		if top := l.all.ranking.top(); top != nil && top.place.weight() != heaviest {
			t.Fatalf("the heaviest weighs %d, not %d", top.place.weight(), heaviest)
		}
	}
	for _, conn := range c.members {
		conn.Close()
	}
	l := &c.r.limiter
	if l.open+l.queued+l.all.size+l.waiting.size+len(l.all.addresses)+len(l.waiting.networks) != 0 || l.all.ranking.heaviest != nil ||
		l.all.ranking.lightest != nil || l.oldest != nil || l.newest != nil {
		t.Errorf("something is left: %+v", l)
	}
}

// One more connection among many costs what it costs among few.
func BenchmarkComeAndGo(b *testing.B) {
	for _, open := range []int{100, 100_000} {
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			r := NewRegistry()
			r.limiter.set(Limits{Connections: open, PerNetwork: open, PerAddress: open, Waiting: open})
			address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 14), byte(i >> 6), byte(i)}) }
			for i := range open - 1 {
				c := &Conn{}
				r.limiter.enter(c, address(i), time.Unix(1, 0))
				r.limiter.asked(c)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := &Conn{}
				r.limiter.enter(c, address(i*7919), time.Unix(1, 0))
				r.limiter.asked(c)
				r.limiter.leave(c)
			}
		})
	}
}
