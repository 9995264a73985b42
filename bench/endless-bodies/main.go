// Command endless-bodies opens connections of HTTP/2 and sends requests on each whose bodies lack their last byte. `visit`
// is a visitor meanwhile, who asks again and again on one connection.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

const dialTime = 30 * time.Second

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: endless-bodies attack|visit OPTIONS"))
	}
	var result any
	var err error
	switch os.Args[1] {
	case "attack":
		result, err = attack(os.Args[2:])
	case "visit":
		result, err = visit(os.Args[2:])
	default:
		err = fmt.Errorf("there is no %q", os.Args[1])
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// dialFrom connects from an address of this machine. Every address of 127.0.0.0/8 is one.
func dialFrom(source, address string) (net.Conn, error) {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if !target.Addr().IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address", address)
	}
	dialer := net.Dialer{Timeout: dialTime, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	return dialer.Dial("tcp", address)
}
