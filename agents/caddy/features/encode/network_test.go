package encode

import (
	"net/netip"
	"testing"

	"edge.svc/caddy/exchange"
)

// One client network uses at most half of the encoders of a coding, and gets as many again once it gives them back.
func TestOneNetworkUsesHalfOfTheEncoders(t *testing.T) {
	e := newEncoders(2, maxRoom)
	greedy, other := exchangeOf(1), exchangeOf(1)
	greedy.In.Client, other.In.Client = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	for range 2 {
		var held []exchange.Source
		for _, x := range []*exchange.Exchange{greedy, other} {
			for range 5 {
				if e.take(exchange.Brotli, 1, networkOf(x)) {
					held = append(held, e.encode(x, &pieces{}, exchange.Brotli, 1))
				}
			}
			if got := e.lines[exchange.Brotli].networks[networkOf(x)]; got != 2 {
				t.Errorf("%v uses %d of 4", networkOf(x), got)
			}
		}
		for _, b := range held {
			b.Close()
		}
		if l := &e.lines[exchange.Brotli]; l.active.Load() != 0 || len(l.networks) != 0 {
			t.Errorf("%d are reserved, %v", l.active.Load(), l.networks)
		}
	}
}
