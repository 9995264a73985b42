// Package expr turns the expressions of rules, which come as typed trees, into closures over the values of a request.
// A tree is checked as if nobody had looked at it before; an expression that was compiled never panics and takes bounded
// time. Conditions without functions that make strings allocate nothing. It knows no rules.
//
// No rule and no request: values come through an interface. A tree is measured before anything is built, and decoding
// allocates at most ten times its input. Strings are bytes. Evaluating a condition allocates nothing unless a function
// makes a string, ends in bounded time, and never panics; what costs too much fails the evaluation. A pattern is there
// once in the process, and all together are bounded. `engine.go` alone knows which library runs them.
package expr
