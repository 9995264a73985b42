// Package pmap has a map of which every version stays what it was.
//
// A change of one key copies the path to it alone.
package pmap
