// Package lists holds the address lists of the cluster: allow lists and block lists.
//
// A version of a list counts only when its chunks add up to the count of its header. Otherwise the previous version
// counts. Without a previous version the list is empty, and rules learn that it is unknown. If the journal has a list in
// part, a reload keeps the version that served. Edits derive tables from one another. A lookup allocates nothing.
package lists
