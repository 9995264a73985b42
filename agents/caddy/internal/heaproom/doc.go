// Package heaproom lets a small heap grow more between two garbage collections than Go does by default.
//
// GOGC in the environment overrides it.
package heaproom
