package program_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

// 20,000 connections from many addresses of one network, half of them silent and half idle after a request, take neither
// the place of an honest client nor more memory than their network may have. Trusted proxies have as many as they like,
// and where the edge is full others give way.
func TestIdleCrowds(t *testing.T) {
	const (
		total, network, address, waiting = 6000, 2000, 1000, 1500
		proxies                          = 2500
		// What the limits allow a connection when they are derived from memory, and what a small heap may grow by.
		bytesPerConnection, room = 64 << 10, 64 << 20
	)
	needFiles(t, 2*total)
	n := makeNetwork(t)
	// The goroutine of this test stays in the namespace of the edge and ends with it.
	if err := enter(n.edge); err != nil {
		t.Fatal(err)
	}
	mode := edgetest.Entry("client-ip", "", &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-demo-client-ip", TrustedCidrs: []string{"10.78.200.0/24"},
	})
	const listen = edgeAddress + ":8080"
	// Nobody leaves because of the time.
	e := live.StartWith(t, map[string]any{"listen": []string{listen}, "idle_timeout": "1h", "read_header_timeout": "1h"}, map[string]any{
		"max_connections": total, "max_per_network": network, "max_per_address": address, "max_waiting": waiting, "header_time": "1h",
	}, []*edgev1.JournalRecord{
		edgetest.Header("node-1"),
		edgetest.Config(1, []*configv1.Entry{live.OriginPolicy(), mode, edgetest.Entry("site", "site-a", edgetest.Site(live.StartOrigin(t), "a.test"))}),
	}, nil)
	empty := resident(t, e.Cmd.Process.Pid)

	honest := startHonestClient(t, n.clients, listen)
	// Each is told of when all have tried to connect.
	come := func(orders ...crowdOrder) (crowds []*crowd) {
		t.Helper()
		inside(t, n.clients, func() {
			for _, order := range orders {
				order.Addr = listen
				c, err := startCrowd(t, order)
				if err != nil {
					t.Error(err)
					return
				}
				crowds = append(crowds, c)
			}
		})
		for _, c := range crowds {
			c.opened()
		}
		return crowds
	}
	open := func() int { return int(e.Status().GetActiveConnections()) }

	asked, silent := crowdOrder{Network: "10.78.1", Sources: 250, Count: 5000}, crowdOrder{Network: "10.78.1", Sources: 250, Count: 5000, Silent: true}
	flood := append(come(asked, asked), come(silent, silent)...)
	turnedAway := func() uint64 {
		c := e.Status().GetConnections()
		return sum(c.GetRefused()) + sum(c.GetEvicted())
	}
	e.Until("all but what the network may have are turned away", func() bool { return turnedAway() >= 20_000-network })
	const honestConnections = 2
	e.Until("no more than the network may have are open", func() bool { return open() <= network+honestConnections })
	held := 0
	for _, c := range flood {
		held += c.alive()
	}
	status := e.Status().GetConnections()
	if held > network || held < waiting {
		t.Errorf("%d of 20,000 are held: %v", held, status)
	}
	if status.GetRefused()["network"] == 0 || status.GetLimit() != total {
		t.Errorf("%v", status)
	}
	memory := func(connections int64) int64 {
		t.Helper()
		grown := resident(t, e.Cmd.Process.Pid) - empty
		if bound := memoryFactor * (connections*bytesPerConnection + room); grown > bound {
			t.Errorf("%d connections took %d MiB, more than %d", connections, grown>>20, bound>>20)
		}
		return grown
	}
	grown := memory(network)

	proxy := come(crowdOrder{Network: "10.78.200", Sources: 1, Count: proxies})[0]
	if alive := proxy.alive(); alive != proxies {
		t.Errorf("a trusted proxy has %d of %d connections", alive, proxies)
	}
	// More networks, until the edge is full.
	come(crowdOrder{Network: "10.78.2", Sources: 250, Count: network}, crowdOrder{Network: "10.78.3", Sources: 250, Count: network})
	e.Until("the edge is not over its limit", func() bool { return open() <= total })
	if status = e.Status().GetConnections(); status.GetRefused()["total"]+status.GetEvicted()["total"] == 0 {
		t.Errorf("the edge was never full: %d open, %v", open(), status)
	}
	if alive := proxy.alive(); alive != proxies {
		t.Errorf("a trusted proxy kept %d of %d connections when the edge was full", alive, proxies)
	}
	memory(total)
	served := honest.stop()
	if served == 0 {
		t.Error("the honest client was served nothing")
	}
	t.Logf("%d idle connections in %d MiB; the honest client was served %d times; %v", held, grown>>20, served, status)
}

// honestClient asks for a site again and again, each second time on a new connection.
type honestClient struct {
	t      *testing.T
	addr   string
	cancel context.CancelFunc
	served int
	failed chan error
}

func startHonestClient(t *testing.T, namespace, addr string) *honestClient {
	ctx, cancel := context.WithCancel(t.Context())
	h := &honestClient{t: t, addr: addr, cancel: cancel, failed: make(chan error, 1)}
	go func() { h.failed <- h.run(ctx, namespace) }()
	return h
}

// stop ends the client and returns how often it was served. That it was not, even once, fails the test.
func (h *honestClient) stop() int {
	h.t.Helper()
	h.cancel()
	if err := <-h.failed; err != nil {
		h.t.Errorf("the honest client after %d answers: %v", h.served, err)
	}
	return h.served
}

func (h *honestClient) run(ctx context.Context, namespace string) error {
	if err := enter(namespace); err != nil {
		return err
	}
	kept, err := h.dial()
	if err != nil {
		return err
	}
	defer kept.Close()
	for reader := bufio.NewReader(kept); ctx.Err() == nil; h.served++ {
		if err := h.ask(kept, reader); err != nil {
			return fmt.Errorf("the kept connection: %w", err)
		}
		fresh, err := h.dial()
		if err != nil {
			return err
		}
		err = h.ask(fresh, bufio.NewReader(fresh))
		fresh.Close()
		if err != nil {
			return fmt.Errorf("a new connection: %w", err)
		}
	}
	return nil
}

func (h *honestClient) dial() (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 78, 9, 9)}, Timeout: live.Wait}
	return dialer.Dial("tcp", h.addr)
}

func (h *honestClient) ask(conn net.Conn, reader *bufio.Reader) error {
	_ = conn.SetDeadline(time.Now().Add(live.Wait))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it got %d", response.StatusCode)
	}
	return nil
}

// resident is the memory of a process in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no VmRSS in\n%s", text)
	return 0
}

func sum(counts map[string]uint64) (n uint64) {
	for _, count := range counts {
		n += count
	}
	return n
}
