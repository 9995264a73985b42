// Package exchange has one request on its way through the edge: the client's request, the copy for the origin, the body,
// the response and how it leaves, and the slots in which features keep their data.
//
// It holds no policy and imports the standard library alone. Only `Send` writes to a client.
package exchange
