// Package acme answers certificate authorities that ask who controls a host (RFC 8555, section 8.3), and lets those
// questions that are an origin's own business pass.
//
// Only the one spelling of a token is spared anything, ten times a second.
package acme
