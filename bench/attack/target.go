package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

var errNotLoopback = errors.New("only this machine can be attacked: the target must be a loopback address")

// parseTarget reads host:port, with or without http://. What it returns is an address literal, so that nothing that is
// resolved later can lead elsewhere.
func parseTarget(text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(text, "http://"), "/"))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not host:port", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is not a port", port)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Unmap().IsLoopback() {
		return netip.AddrPort{}, errNotLoopback
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), nil
}

// dial connects to the target, and makes sure once more that it is on this machine.
func dial(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	if !target.Addr().IsLoopback() {
		return nil, errNotLoopback
	}
	return new(net.Dialer).DialContext(ctx, "tcp", target.String())
}
