// Package count counts the responses and the traffic of each site and of the node, by minute. It keeps the counts beyond the
// life of the process and hands them to the agent in batches.
//
// Counting touches atomics alone. Each second one goroutine moves the counts into the running segment, a mapped file. A
// killed process loses at most that second, and the next process reports it as a gap. Counts survive versions of a site,
// reloads and `kill -9`; every loss is reported as a gap. A folder that fails stops nothing. The effects of rules since the
// start of the process can be read at any time, and draining does not change them.
package count
