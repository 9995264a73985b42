// Package geo finds the country and the autonomous system of an address in two files in MaxMind's format.
//
// A file is checked as a whole before it is used. The previous file stays in use until a valid one arrives. A lookup
// allocates nothing and takes no lock. Without a database the result is unknown, which differs from no record.
package geo
