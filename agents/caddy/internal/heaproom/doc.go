// Package heaproom gives a small heap more room between two collections than Go would.
//
// `GOGC` in the environment wins.
package heaproom
