// Package hold keeps the sockets on which an edge listens in a process of their own, `svc-caddy hold`, which outlives the
// data plane, the agent and their supervisor: connections that arrive while one of them is started anew wait in the kernel.
//
// The holder opens and closes sockets for processes of its user, by network and address, over a Unix socket. Each request
// and each reply is one line of JSON, sent as one message; descriptors travel beside it. A holder that is started where
// one runs takes its sockets over.
package hold
