// Package api serves the calls of the agent on a unix socket that only the owner can reach. The calls belong to the
// features.
//
// The folder is 0700 before the socket exists, and the socket is 0600. A socket that another process serves is never
// replaced.
package api
