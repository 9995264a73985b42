// Package buffer gathers request bodies before an origin is asked, so that slow clients hold no connection to one: 64 KiB
// of a body in memory, and 16 MiB in the spool. A longer body goes on as it comes, at 16 KiB a second or more, and so does
// one that finds no room. Sites with request buffering off get their bodies as they come, at the rate of all bodies.
package buffer
