// Package origin carries requests to the origins of a site and brings the answers back.
//
// It has its own HTTP/1.1 client on pooled connections. The goroutine of the request writes the request and reads the
// answer itself, which saves the two switches of goroutines per request of net/http's client, and headers are parsed
// straight into the client's answer. What is shared between requests is process-global: idle connections (Transports)
// and passive health (State); a site costs no more than its compiled Pool.
//
// Every address is checked against the policy when it is dialled, whichever port rules ask for. Groups of origins share
// nothing but the settings of the site. Connections and health are of what is dialled: what rules put in an origin's
// place is another server. A request that rules say nothing of pays nothing for them.
package origin
