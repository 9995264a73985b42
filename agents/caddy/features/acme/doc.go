// Package acme responds to ACME validation requests (HTTP-01, RFC 8555, section 8.3). It lets requests for an origin's own
// validations pass.
//
// Only the one spelling of a token is exempt from challenges, ten times a second.
package acme
