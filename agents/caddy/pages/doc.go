// Package pages writes the answers that the edge makes by itself when it cannot or may not pass a request on.
//
// The pages need nothing from elsewhere: no script, no address, styles inside. The only text of a request that they
// show is its id, escaped.
//
// Pages need nothing from elsewhere and show nothing of the request but its id, escaped.
package pages
