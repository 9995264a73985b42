// Package lifesign tells the parent process that this process lives, which step of its start it has reached, and why it
// died.
//
// Everything goes over the inherited file descriptor in SVC_LIFE_FD: one byte a second, one byte for each step, and the
// text that the Go runtime prints when it ends the process. The bytes never occur in text. No lock is taken. Logs go to
// standard error. Without SVC_LIFE_FD, the package does nothing.
package lifesign
