// Package expr compiles the expressions of rules from typed trees to closures over the values of a request. It knows
// neither rules nor requests: values come through an interface.
//
// Safety: a tree is not trusted. It is measured before anything is built, and decoding allocates at most ten times its
// input. A compiled expression never panics and ends in bounded time; an evaluation that costs too much fails.
//
// Cost: a condition allocates memory only if it uses a function that makes a string. Strings are bytes. The process keeps
// each pattern once, and the memory of all patterns is bounded. Only engine.go knows the library that runs patterns.
package expr
