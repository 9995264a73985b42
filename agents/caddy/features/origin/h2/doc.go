// Package h2 is a client of HTTP/2 (RFC 9113) for connections to origins. It knows connections and streams. Choosing an
// origin, retrying, and what a response means are the caller's.
//
// A connection has one goroutine that reads and one that writes, whatever the number of its streams. Goroutines of requests
// append frames to a buffer, and the writer sends what has gathered with one call. The reader handles all frames of a read
// under one lock, copies bodies into the buffers of their streams, and wakes who waits. Header blocks need no state: they
// refer to the static table alone, so they are made outside the lock.
//
// An origin is not trusted. Everything that it can make the edge keep or do has a bound:
//
//	body of a stream               its window: it may send no more than was taken
//	bodies of a connection         the windows of its streams: so none holds up another
//	header block, fields           maxHeader as sent and as decoded, maxFields, maxContinuations
//	informational responses        maxInterim, of which maxPending may wait
//	frames that bring nothing      maxWaste a second (PING, SETTINGS, RST_STREAM, empty DATA, unknown types, …)
//	a write, or silence            two ticks; PING asks a silent origin once until it sends something
//
// Streams that the edge has reset count as open until the origin has seen the reset: clients that disconnect early do not
// open more streams than the origin takes.
package h2
