// Package waf inspects requests with the OWASP Core Rule Set in the engine Coraza.
//
// The rule set: a process has one, built when the first site needs it and released ten minutes after the last one. The
// metrics show its version and checksum; a rule set with another checksum is not loaded. An inspection is a transaction with
// the settings and exclusions of its site. The engine calculates scores and never interrupts; the stage decides.
//
// Fairness (queue.go): as many inspections run at a time as there are processors, and one more for a request without a
// body. Sites take turns, and so do the client networks of a site. Long bodies yield between rounds. A request waits up to
// a second for its turn after its body was read, and computes for up to a second (waf_pattern_ms). Beyond either limit,
// the response is 503 waf-busy in block mode; in detect mode, the request continues.
//
// Packed bodies (unpack.go): the content of one Content-Encoding is inspected, within the limit and 20 times the length.
//
// Bodies (package bodies): text beyond 256 arguments or 64 levels is joined as lines and never left out. Rules see
// 160 KiB at a time (rounds.go). A longer body is inspected in several overlapping rounds, which share one time limit and
// add up their scores. Markup of editors, GraphQL documents and inline images are read as such (markup.go, graphql.go).
//
// Exceptions (exceptions.go): a match that stands only by harmless parts of a value is none. They are data in one place.
//
// Memory: bodies are in the spool that all features share. A verdict is cached only for requests without a body, under a digest of everything that it depends on.
package waf
