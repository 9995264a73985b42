package program_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"edge.svc/caddy/program/live"
)

const runCrowd = "SVC_CADDY_TEST_CROWD"

// crowdOrder is what a process of clients does: it opens connections from the addresses Network.1, Network.2, … in turn
// and keeps them.
type crowdOrder struct {
	Addr    string
	Network string
	Sources int
	Count   int
	// Silent connections send nothing. Others ask for something first, and are idle after the answer.
	Silent bool
}

// crowd is such a process.
type crowd struct {
	t      *testing.T
	stdin  io.WriteCloser
	answer *bufio.Reader
}

// A test binary that is started with an order is that crowd.
func init() {
	if order := os.Getenv(runCrowd); order != "" {
		crowdMain(order)
		os.Exit(0)
	}
}

// startCrowd starts clients; the network namespace is that of the calling goroutine. They have tried to connect when
// opened returns.
func startCrowd(t *testing.T, order crowdOrder) (*crowd, error) {
	encoded, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runCrowd+"="+string(encoded))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	return &crowd{t: t, stdin: stdin, answer: bufio.NewReader(stdout)}, nil
}

// opened waits until all clients have tried to connect.
func (c *crowd) opened() {
	c.t.Helper()
	if line, err := c.answer.ReadString('\n'); err != nil || line != "opened\n" {
		c.t.Fatalf("the clients said %q, %v", line, err)
	}
}

// alive is how many of the connections the edge has not closed.
func (c *crowd) alive() int {
	c.t.Helper()
	fmt.Fprintln(c.stdin, "alive")
	line, err := c.answer.ReadString('\n')
	n, bad := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || bad != nil {
		c.t.Fatalf("the clients said %q, %v", line, err)
	}
	return n
}

func crowdMain(encoded string) {
	var order crowdOrder
	if err := json.Unmarshal([]byte(encoded), &order); err != nil {
		panic(err)
	}
	conns := make([]net.Conn, order.Count)
	var wg sync.WaitGroup
	const workers = 8
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < order.Count; i += workers {
				conns[i] = order.open(i)
			}
		})
	}
	wg.Wait()
	fmt.Println("opened")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		alive := 0
		for _, conn := range conns {
			if conn != nil && isOpen(conn) {
				alive++
			}
		}
		fmt.Println(alive)
	}
}

// open returns nil where the edge would not have the connection.
func (o crowdOrder) open(i int) net.Conn {
	from := net.ParseIP(fmt.Sprintf("%s.%d", o.Network, 1+i%o.Sources))
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: live.Wait, KeepAlive: -1}
	conn, err := dialer.Dial("tcp", o.Addr)
	for range 5 {
		if err == nil || errors.Is(err, syscall.ECONNRESET) {
			break
		}
		// More came than may wait for being accepted.
		conn, err = dialer.Dial("tcp", o.Addr)
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return nil
	case err != nil:
		panic(err)
	}
	if o.Silent {
		return conn
	}
	_ = conn.SetDeadline(time.Now().Add(live.Wait))
	if _, err := io.WriteString(conn, "GET /.svc/health HTTP/1.1\r\nHost: 192.0.2.9\r\n\r\n"); err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			_, err = io.Copy(io.Discard, response.Body)
		}
	}
	if err != nil {
		conn.Close()
		return nil
	}
	return conn
}

// isOpen looks whether the other end has closed a connection.
func isOpen(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	open := false
	_ = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		open = err == unix.EAGAIN
	})
	return open
}

// needFiles makes sure that this process and those it starts may open so many files each.
func needFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max >= files {
		return
	}
	// Through syscall, which then lets children have it, too.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		t.Fatalf("this test needs %d open files a process; the limit is %d and cannot be raised (%v): `ulimit -Hn %d` as root before it",
			files, limit.Max, err, files)
	}
}

// edgeAddress is where the edge is in its namespace, clientGateway the way to all of its clients.
const (
	edgeAddress   = "10.77.0.1"
	clientGateway = "10.77.0.2"
	clientRange   = "10.78.0.0/16"
)

// network is two network namespaces, one for the edge and one for its clients, which have all addresses of a range.
type network struct {
	t             *testing.T
	edge, clients string
}

func makeNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, edge: fmt.Sprintf("svce%d", os.Getpid()), clients: fmt.Sprintf("svcc%d", os.Getpid())}
	for _, name := range []string{n.edge, n.clients} {
		n.ip("netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		n.ip("-n", name, "link", "set", "lo", "up")
	}
	n.ip("-n", n.edge, "link", "add", "e0", "type", "veth", "peer", "name", "c0", "netns", n.clients)
	n.ip("-n", n.edge, "addr", "add", edgeAddress+"/30", "dev", "e0")
	n.ip("-n", n.clients, "addr", "add", clientGateway+"/30", "dev", "c0")
	n.ip("-n", n.edge, "link", "set", "e0", "up")
	n.ip("-n", n.clients, "link", "set", "c0", "up")
	n.ip("-n", n.edge, "route", "add", clientRange, "via", clientGateway)
	n.ip("-n", n.clients, "route", "add", "local", clientRange, "dev", "lo")
	return n
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("network namespaces are made by root with ip of iproute2: ip %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// enter moves the calling goroutine and what it starts into a namespace, for as long as it lives.
func enter(namespace string) error {
	runtime.LockOSThread()
	file, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}

// inside does something in a namespace, and returns when it is done.
func inside(t *testing.T, namespace string, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		err := enter(namespace)
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
