// Package origin carries requests to the origins of a site and returns the responses.
//
// It has its own HTTP/1.1 client on pooled connections. The goroutine of the request writes the request and reads the
// response itself, which saves the two goroutine switches per request of net/http's client. Headers are parsed straight
// into the client's response. Requests share process-global data alone: idle connections (Transports) and passive health
// (State). A site costs no more than its compiled Pool.
//
// Origins of sites that ask for HTTP/2 have a client of their own (Shared, on connections of the package h2), whose
// connections many requests share. WebSockets, and all other sites, use HTTP/1.1.
//
// Every address is checked against the policy when it is dialed, whichever port rules ask for. Groups of origins share
// only the settings of the site. Connections and health belong to the dialed address: an address that a rule substitutes
// is another server. A request that no rule changes pays nothing for rules.
package origin
