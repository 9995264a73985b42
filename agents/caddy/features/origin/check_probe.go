package origin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"edge.svc/caddy/core"
)

const (
	// What a check reads of a response, headers included.
	maxCheckRead = 64 << 10
	// Informational responses before the final one.
	maxCheckInterim = 8
)

// probe makes one check: one request on a connection of its own, without following a redirect. before is called with each
// address ahead of a connection to it, and may refuse. Errors are *originError, or what before returned.
func (t *Transports) probe(ctx context.Context, key *checkKey, before func(netip.Addr) error) (status int, err error) {
	addrs, err := t.resolver.resolve(ctx, key.dial.host.Value(), t.policy())
	if err != nil {
		return 0, fail(classOf(err), err)
	}
	deadline, _ := ctx.Deadline()
	var c net.Conn
	for i, addr := range addrs {
		if err = before(addr); err != nil {
			return 0, err
		}
		// Each address gets an equal share of what is left, as for requests.
		share := time.Now().Add(time.Until(deadline) / time.Duration(len(addrs)-i))
		if c, err = t.reach(ctx, key, addr, share); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		t.resolver.forget(key.dial.host.Value())
		return 0, err
	}
	// Also of a response that is only partly there.
	defer c.Close()
	_ = c.SetDeadline(deadline)
	if key.http2 {
		status, err = askOnceShared(ctx, c, key)
	} else {
		status, err = askOnce(c, key)
	}
	if err != nil {
		return status, fail(classOf(err), err)
	}
	if status < key.lowest || status > key.highest {
		return status, fail(failStatus, nil)
	}
	return status, nil
}

// reach connects to one address.
func (t *Transports) reach(ctx context.Context, check *checkKey, addr netip.Addr, until time.Time) (net.Conn, error) {
	key, protocol := &check.dial, "http/1.1"
	if check.http2 {
		protocol = "h2"
	}
	tcp, _, err := t.connect(ctx, []netip.Addr{addr}, key.port, until)
	if err != nil {
		return nil, fail(classOf(err), err)
	}
	if key.tls == plain {
		return tcp, nil
	}
	left, _ := ctx.Deadline()
	secure, err := t.handshake(ctx, tcp, &origin{dial: *key}, time.Until(left), protocol)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return secure, nil
}

// askOnce sends the request of a check and reads the response, as much of it as a check reads.
func askOnce(c io.ReadWriter, key *checkKey) (int, error) {
	method := http.MethodGet
	if key.head {
		method = http.MethodHead
	}
	request := method + " " + key.path + " HTTP/1.1\r\nHost: " + key.host + "\r\nUser-Agent: svc-node-healthcheck/" +
		core.Version + "\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(c, request); err != nil {
		return 0, err
	}
	limited := &io.LimitedReader{R: c, N: maxCheckRead}
	buffered := bufio.NewReaderSize(limited, 4<<10)
	asked := &http.Request{Method: method}
	for range maxCheckInterim {
		response, err := http.ReadResponse(buffered, asked)
		if err != nil {
			return 0, malformed(err)
		}
		if response.StatusCode < 200 && response.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err != nil && limited.N > 0 {
			return response.StatusCode, malformed(err)
		}
		return response.StatusCode, nil
	}
	return 0, errMalformed
}

// malformed keeps what says that time was up; anything else about a response is its form.
func malformed(err error) error {
	if isTimeout(err) {
		return err
	}
	return errors.Join(errMalformed, err)
}
