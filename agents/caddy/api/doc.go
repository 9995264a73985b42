// Package api serves what the agent may ask of the edge, on a unix socket that only the owner can reach. The calls
// are the features'.
//
// The socket is 0600 in a folder that is 0700 before the socket exists. A socket that somebody serves is never
// replaced.
package api
