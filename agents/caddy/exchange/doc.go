// Package exchange has what a request is on its way through the edge: what was asked, what an origin gets, the body, the
// answer and how it leaves, and the slots in which features keep what they know. It holds no policy of its own and
// imports nothing but the standard library.
//
// No policy, the standard library alone. Nothing but `Send` writes to a client.
package exchange
