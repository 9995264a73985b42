// Package inflight bounds the memory of requests in progress, in total and for each client network, over all connections
// and protocols.
//
// A request counts RequestBytes from its first stage to its end, and the bytes of its body that wait in memory. Beyond the
// limit of a network its next request is refused. Beyond the limit in total the network that holds most loses its newest
// request.
package inflight
