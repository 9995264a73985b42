package listen

import (
	"net/netip"

	networks "edge.svc/caddy/internal/address"
)

// Whom connections are counted for: an IPv4 address or the /64 that one IPv6 customer has, and the network above it
// that one party usually holds as a whole.
const addressBits4, addressBits6 = 32, 64

// ledger counts connections by address and network, and knows the heaviest of both. It is not safe for concurrent use.
type ledger struct {
	size      int
	networks  map[netip.Addr]*network
	addresses map[netip.Addr]*client
	ranking   ranking[network]
}

// network is one with connections, with its addresses in the order of theirs.
type network struct {
	key       netip.Addr
	place     ranked[network]
	addresses ranking[client]
}

// client is an address with connections.
type client struct {
	key     netip.Addr
	network *network
	place   ranked[client]
	newest  *seat
}

// seat is the place of a connection in a ledger; none while at is nil.
type seat struct {
	conn         *Conn
	at           *client
	older, newer *seat
}

// networkOf is the network of an address, invalid for none.
func networkOf(addr netip.Addr) netip.Addr {
	_, network := keysOf(addr)
	return network
}

func keysOf(addr netip.Addr) (address, network netip.Addr) {
	addr = addr.Unmap().WithZone("")
	narrow := addressBits6
	if addr.Is4() {
		narrow = addressBits4
	}
	// It cannot fail for a valid address.
	a, _ := addr.Prefix(narrow)
	return a.Addr(), networks.NetworkOf(addr).Addr()
}

// add seats a connection as the newest one of its address.
func (l *ledger) add(s *seat, conn *Conn, addr netip.Addr) {
	key, above := keysOf(addr)
	a := l.addresses[key]
	if a == nil {
		if l.addresses == nil {
			l.addresses, l.networks = map[netip.Addr]*client{}, map[netip.Addr]*network{}
		}
		n := l.networks[above]
		if n == nil {
			n = &network{key: above}
			n.place.of = n
			l.networks[above] = n
		}
		a = &client{key: key, network: n}
		a.place.of = a
		l.addresses[key] = a
	}
	s.conn, s.at, s.older, s.newer = conn, a, a.newest, nil
	if s.older != nil {
		s.older.newer = s
	}
	a.newest = s
	a.network.addresses.raise(&a.place)
	l.ranking.raise(&a.network.place)
	l.size++
}

// remove takes a connection's seat away, if it has one.
func (l *ledger) remove(s *seat) {
	a := s.at
	if a == nil {
		return
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		a.newest = s.older
	}
	if s.older != nil {
		s.older.newer = s.newer
	}
	*s = seat{}
	l.size--
	n := a.network
	n.addresses.lower(&a.place)
	l.ranking.lower(&n.place)
	if a.place.weight() == 0 {
		delete(l.addresses, a.key)
	}
	if n.place.weight() == 0 {
		delete(l.networks, n.key)
	}
}

// newestOfHeaviest is the newest connection of the heaviest address in the heaviest network, nil when there is none.
func (l *ledger) newestOfHeaviest() *Conn {
	if n := l.ranking.top(); n != nil {
		return n.newestOfHeaviest()
	}
	return nil
}

func (n *network) newestOfHeaviest() *Conn { return n.addresses.top().newest.conn }
