// Package confine removes from the process what serving does not need: capabilities, new privileges and access to files.
//
// main calls it first. It covers all threads, also those that start later, and cannot be undone. If the kernel does not
// support a part, the status reports it (confinement_problem) and the process continues. An error in SVC_CONFINE ends the
// process. A build with C code, such as one for the race detector, is not confined.
package confine
