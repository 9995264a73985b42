// Package lists holds the address lists of the cluster: who is let in whatever else is said, and who is kept out.
//
// A list counts only when its chunks add up to the count of its header, else its version before; with none before,
// nobody is on it and rules are told that it is not known. A reload keeps what served for a list that the journal has
// in part. Edits derive tables from one another; finding an address allocates nothing.
package lists
