// Package geo knows the country and the autonomous system of an address from two files in MaxMind's format.
//
// A file is checked as a whole before it is used, and what was read last stays until a whole one comes. Looking up
// allocates nothing and takes no lock. Without a database nothing is known, which is not the same as no record.
package geo
