// Package count counts what each site and the node answer and carry, by minute, so that it outlives the process, and
// hands it to the agent in batches.
//
// Counting touches atomics alone. Each second what was counted moves into the running segment, a file that is memory at
// the same time: a process that is killed takes at most that second with it, and the next one says so as a gap.
//
// Counting touches atomics alone; one goroutine moves them into a mapped file each second. Counts survive versions of a
// site, reloads and `kill -9`; what does not is told as a gap. A folder that fails stops nothing. How requests fared
// since the start of the process can be asked at any time, and draining takes nothing of it.
package count
