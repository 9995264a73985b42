// Package pages writes the responses that the edge makes itself when it cannot or may not forward a request.
//
// A page loads nothing: no script, no address, styles inside. It shows one text of the request, its id, escaped.
package pages
