package exchange

import "net/http"

// Local has requests of the node itself go through the edge as those of visitors do, without what concerns visitors: bans,
// counts, challenges and rules that deny. It is a component that core.Find finds.
type Local interface {
	// Serve responds to a request. It returns who made the response, and whether all of it was written.
	Serve(w http.ResponseWriter, r *http.Request) (from From, whole bool)
}

// Certificates knows which hosts of a site can be reached over HTTPS. It is a component that core.Find finds.
type Certificates interface {
	Covers(p *Plan, host string) bool
}
