// tlsload makes certificates, handshakes and requests of HTTP/2 for benchmarks of the edge, and serves HTTP/2 as Go does by
// itself:
//
//	tlsload certificates --count N [--key ecdsa|rsa] [--host site-%d.example]     a line each, see certificates.go
//	tlsload handshakes --address host:port --host NAME [--resumed] …             what each took, as JSON
//	tlsload requests --address host:port --host NAME --seconds N …               requests and how many failed, as JSON
//	tlsload serve --address host:port --certificate FILE --key FILE              answers 1 KiB
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{
		"certificates": makeCertificates, "handshakes": handshakes, "requests": requests, "serve": serve,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tlsload certificates|handshakes|requests|serve …")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
