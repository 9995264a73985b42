// Package confine takes from the process what serving does not need: capabilities, new privileges, and files. It holds
// for every thread, those that the runtime starts later included, and cannot be taken back.
//
// First thing in `main`, in all threads. What a kernel cannot do is reported (`confinement_problem`), never fatal; a
// mistake in `SVC_CONFINE` is. Works without C code only: a build for the race detector is not confined.
package confine
