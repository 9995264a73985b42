// Package requestlog logs requests: those of a sample, and those that the edge refused or that a log rule matched.
//
// A row is encoded when its request is over (row.go), and stored in a ring that is a mapped file (ring.go): a process that
// is killed loses no row that it had stored. The agent takes rows out in the order in which they came. They stay until the
// console has them, so the ring is also what the node keeps while the console is not reached. A site that logs much leaves
// room for others: beyond half of the ring each site has an equal share. Rows without room are counted for their site, in
// the file as well.
package requestlog
