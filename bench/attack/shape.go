package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// shape is a kind of flood.
type shape struct {
	name, what string
	// Requests a second when nothing else is asked for.
	rate int
	// share of the rate at a moment of the flood, 0 to 1.
	share func(elapsed, whole time.Duration) float64
	// request chooses client and path.
	request func(o *options) (client netip.Addr, path string)
}

func steady(time.Duration, time.Duration) float64 { return 1 }

func manyClients(o *options) netip.Addr { return attacker(rand.IntN(o.addresses)) }

var shapes = []shape{
	{
		name: "one-address", what: "one address asks far too much: it is banned on the node (ip_qps)",
		rate: 200, share: steady,
		request: func(o *options) (netip.Addr, string) { return attacker(0), o.path },
	},
	{
		name: "many-addresses", what: "many addresses, each below its own limit: the level of the site rises (site_qps)",
		rate: 3000, share: steady,
		request: func(o *options) (netip.Addr, string) {
			return manyClients(o), fmt.Sprintf("%s?%d", o.path, rand.IntN(1_000_000))
		},
	},
	{
		name: "one-url", what: "many addresses ask for one path: the level of that path alone rises (url_qps)",
		rate: 500, share: steady,
		request: func(o *options) (netip.Addr, string) { return manyClients(o), o.path },
	},
	{
		name: "slow-rise", what: "like many-addresses, but the rate climbs from nothing to its height in the time there is",
		rate: 3000, share: func(elapsed, whole time.Duration) float64 { return float64(elapsed) / float64(whole) },
		request: func(o *options) (netip.Addr, string) { return manyClients(o), o.path },
	},
	{
		name: "failing-origin", what: "a moderate rate of what the demo's origin fails on (origin_error_rate)",
		rate: 100, share: steady,
		request: func(o *options) (netip.Addr, string) { return manyClients(o), "/status/503" },
	},
}

// The clients played are in 198.18.0.0/15, which is for measurements: attackers in its lower half, each visitor in a /24 of
// its own in the upper one, because passes and cookies are looked at by network.
const maxAddresses = 1 << 16

func attacker(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}) }

func visitorAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 19, byte(i), 1}) }
