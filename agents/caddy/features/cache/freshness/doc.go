// Package freshness has the rules of a shared HTTP cache as pure functions: what may be stored, how long it is fresh, which
// stored response a request may get, and how a validation changes it. It follows RFC 9111, RFC 9110 section 13 and 14,
// RFC 9213 for CDN-Cache-Control, and RFC 5861 for stale-while-revalidate and stale-if-error.
//
// The rule of the site decides first. With `respect` the headers of the origin decide, and the TTL of the rule takes the place
// of the heuristic of RFC 9111 section 4.2.2: it applies only if the origin sent neither Cache-Control nor Expires. Nothing is
// ever guessed from Last-Modified. With `override` the TTL of the rule decides, also against no-store and private.
//
// A response that must be validated before each use, by no-cache or because it is never fresh, is stored only with a
// validator. Cache directives of requests are advisory (RFC 9111 section 5.2.1). A client could use them to send every request
// to the origin, so they are ignored, unless the caller asks for them.
//
// All times come from the caller. A Duration below 0 says that a directive is missing.
package freshness
