// Package listen wraps the listeners of the edge. It knows the TCP peer and the PROXY header of each connection, and
// bounds and counts connections. When a client is banned, it ends the client's connections and exchanges.
//
// Accepting touches the raw connection alone and reads nothing from the client. The goroutine of a connection reads from
// its client. Opening or closing a port affects no other port. Each step of counting costs the same, however many
// connections there are. An exchange is entered before bans are checked, so none escapes a new ban. An exchange is ended
// only while it cannot leave.
//
// A listener of streams (WrapStreams) is for protocols other than HTTP: it alone says whether a PROXY header comes, the time
// for the first request ends with that header, deadlines are those of the user, and io.Copy moves bytes within the kernel.
package listen
