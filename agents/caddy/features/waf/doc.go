// Package waf inspects requests with the OWASP Core Rule Set.
//
// There is one set of rules in a process, of which every inspection takes a transaction with the settings of its site. The
// engine never interrupts: it gives scores, and the stage decides. Nothing is built while no site wants it.
//
// One set of rules in a process, built when the first site wants it and given up ten minutes after the last; its
// version and digest are in the metrics, and another digest is not loaded. The engine gives scores and never
// interrupts: the stage decides. Settings and exclusions belong to a transaction. As many inspections as processors run
// at once, and one more without a body (`queue.go`): sites take turns, and the client networks of each, and long bodies
// yield between rounds. A request waits a second for a turn, after its body was looked at, and computes for a second
// (`waf_pattern_ms`): beyond either the answer is 503 `waf-busy` where attacks are blocked, else it goes on. Bodies are
// read by `bodies`: text beyond 256 arguments or 64 levels is joined as lines, never left out; a line is no command to
// the rules that is none as a value. Rules see 160 KiB of a body at once (`rounds.go`); longer ones are inspected in
// several rounds that overlap, share one time and add up. Plain markup of editors, documents of GraphQL and inline
// images are read as what they are (`markup.go`, `graphql.go`). What is kept of bodies takes 4 MiB at most, and 1 GiB
// of files without names in `waf/` of the state folder; one site alone may hold half. A verdict is kept for requests
// without a body alone, under a digest of all it follows from.
package waf
