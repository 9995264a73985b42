// Package listen wraps the listeners of the edge: it knows the TCP peer and the PROXY header of each connection,
// bounds and counts connections, and ends them and their exchanges when their client is banned.
//
// Accepting touches nothing but the raw connection; whatever has to be read from a client is read by the goroutine of
// its connection.
//
// Opening or closing a port concerns nobody on another one. Accepting reads nothing from the client. Each step of
// counting costs the same, however many connections there are. A new ban ends connections and exchanges of its clients;
// an exchange is entered before bans are checked, so none slips between, and is ended only while it cannot leave.
package listen
