// Package pmap has a persistent map: a change returns a new version, and earlier versions stay as they are.
//
// A change of a key copies only the path to it.
package pmap
