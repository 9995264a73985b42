// Package memory reads how much memory this process may use, and keeps the Go heap to its share of it.
//
// `GOMEMLIMIT` in the environment wins.
package memory
