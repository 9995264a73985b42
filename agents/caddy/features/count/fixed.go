package count

import (
	"crypto/tls"
	"strconv"

	"edge.svc/caddy/exchange"
)

// fixed is a count that every site has. Each has its place in a counter: counting one is one addition.
type fixed uint8

const (
	http10 fixed = iota
	http11
	http2
	http3
	httpOther
	tls12
	tls13
	tlsNone
	tlsOther
	firstCause
)

const (
	firstBrowser       = firstCause + fixed(causeEdge)
	firstOS            = firstBrowser + fixed(browsers)
	firstDevice        = firstOS + fixed(systems)
	firstOriginLatency = firstDevice + fixed(devices)
	fixedCounts        = firstOriginLatency + fixed(exchange.LatencyBuckets)
)

// fixedFields are the counts by name, as the console knows them.
var fixedFields = func() (fields [fixedCounts]field) {
	put := func(at fixed, names ...string) {
		for i, name := range names {
			fields[at+fixed(i)] = nameField(exchange.NewCount(name))
		}
	}
	put(http10, "http.1.0", "http.1.1", "http.2", "http.3", "http.other")
	put(tls12, "tls.1.2", "tls.1.3", "tls.none", "tls.other")
	for c := causeUnreachable; c <= causeEdge; c++ {
		put(firstCause+fixed(c-1), "failed."+causeNames[c])
	}
	for i, name := range browserNames {
		put(firstBrowser+fixed(i), "browser."+name)
	}
	for i, name := range systemNames {
		put(firstOS+fixed(i), "os."+name)
	}
	for i, name := range deviceNames {
		put(firstDevice+fixed(i), "device."+name)
	}
	for i := range exchange.LatencyBuckets {
		put(firstOriginLatency+fixed(i), "origin-latency."+strconv.Itoa(i))
	}
	return fields
}()

// ofFixed has a bit for each field of a fixed count.
var ofFixed = func() (bits []uint64) {
	for _, f := range fixedFields {
		at := int(f - fieldName)
		for len(bits) <= at/64 {
			bits = append(bits, 0)
		}
		bits[at/64] |= 1 << (at % 64)
	}
	return bits
}()

// isFixed reports whether a name is that of a fixed count. None of them says how requests fared.
func isFixed(f field) bool {
	at := int(f - fieldName)
	return at/64 < len(ofFixed) && ofFixed[at/64]&(1<<(at%64)) != 0
}

func (c *counter) tally(f fixed) { c.fixed[f].Add(1) }

// tallyVisitor counts how a client asked.
func (c *counter) tallyVisitor(in *exchange.Inbound) {
	c.tally(protocolOf(in.Major, in.Minor))
	c.tally(tlsOf(in.TLS))
	agent := ""
	if values := in.Header["User-Agent"]; len(values) > 0 {
		agent = values[0]
	}
	a := agentOf(agent)
	c.tally(firstBrowser + fixed(a.browser))
	c.tally(firstOS + fixed(a.system))
	c.tally(firstDevice + fixed(a.device))
}

// tallyOrigin counts how long an origin took to respond.
func (c *counter) tallyOrigin(x *exchange.Exchange) {
	// Of an exchange without an origin nothing is to be made up: others ask what is known at its end.
	if outcome := exchange.Origin.Peek(x); outcome != nil && outcome.Asked && outcome.Status > 0 {
		c.tally(firstOriginLatency + fixed(exchange.LatencyBucket(outcome.FirstByte)))
	}
}

func protocolOf(major, minor int) fixed {
	switch {
	case major == 1 && minor == 0:
		return http10
	case major == 1 && minor == 1:
		return http11
	case major == 2:
		return http2
	case major == 3:
		return http3
	}
	return httpOther
}

func tlsOf(state *tls.ConnectionState) fixed {
	switch {
	case state == nil:
		return tlsNone
	case state.Version == tls.VersionTLS12:
		return tls12
	case state.Version == tls.VersionTLS13:
		return tls13
	}
	return tlsOther
}
