package hold

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const wait = 20 * time.Second

// The test binary is the command when this is set.
const asCommand = "SVC_HOLD_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// command starts a holder in a process of its own and waits until it responds.
func command(t *testing.T, path string, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--socket", path}, more...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, _ := bufio.NewReader(said).ReadString('\n')
	if !strings.Contains(line, "holding") {
		t.Fatalf("the holder says %q", line)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return cmd
}

// start serves a holder in this process.
func start(t *testing.T, linger time.Duration) (path string, ended chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hold.sock")
	h, err := Start(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- h.Serve(ctx, linger)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return path, ended
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(wait); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// greet connects and says a word.
func greet(t *testing.T, address, word string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, wait)
	if err != nil {
		t.Fatalf("a connection was refused: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(wait))
	if _, err := fmt.Fprintln(conn, word); err != nil {
		t.Fatal(err)
	}
	return conn
}

// hear accepts a connection and reads its word.
func hear(t *testing.T, l net.Listener) string {
	t.Helper()
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(wait))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	word, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(word)
}

func listen(t *testing.T, c *Client, address string) net.Listener {
	t.Helper()
	l, err := c.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func list(t *testing.T, path string) []Socket {
	t.Helper()
	all, err := NewClient(path).List()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Who connects while nobody accepts is served by the next listener of the same name.
func TestConnectionsWaitForTheNextListener(t *testing.T) {
	path, _ := start(t, 0)
	address := freeAddress(t)
	listen(t, NewClient(path), address).Close()
	greet(t, address, "early")
	l := listen(t, NewClient(path), address)
	if word := hear(t, l); word != "early" {
		t.Errorf("%q came first", word)
	}
	if err := NewClient(path).Close(Socket{"tcp", address}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := net.DialTimeout("tcp", address, wait); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed port says %v", err)
	}
}

func TestDatagramsWaitForTheNextReader(t *testing.T) {
	path, _ := start(t, 0)
	address := freeAddress(t)
	first, err := NewClient(path).ListenPacket(address)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	sender, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := sender.Write([]byte("early")); err != nil {
		t.Fatal(err)
	}
	second, err := NewClient(path).ListenPacket(address)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_ = second.SetReadDeadline(time.Now().Add(wait))
	buffer := make([]byte, 16)
	n, _, err := second.ReadFrom(buffer)
	if err != nil || string(buffer[:n]) != "early" {
		t.Errorf("%q %v", buffer[:n], err)
	}
}

// What cannot be opened is told for that port; the others go on.
func TestEachPortHasItsOwnFailure(t *testing.T) {
	path, _ := start(t, 0)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := NewClient(path)
	if _, err := c.Listen(taken.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, ErrAway) {
		t.Errorf("a port in use: %v", err)
	}
	for _, address := range []string{"", "80", ":0", ":65536", "localhost:8080", "[::1]", "127.0.0.1:x"} {
		if _, err := c.Listen(address); err == nil || errors.Is(err, ErrAway) {
			t.Errorf("%q: %v", address, err)
		}
	}
	address := freeAddress(t)
	listen(t, c, address)
	if held := list(t, path); len(held) != 1 || held[0] != (Socket{"tcp", address}) {
		t.Errorf("%v", held)
	}
}

// A killed process leaves its sockets with the holder; a killed holder leaves them with whoever uses them, who gives them to
// the next one.
func TestTheHolderIsGivenWhatALivingProcessHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hold.sock")
	holder := command(t, path)
	c := NewClient(path)
	address := freeAddress(t)
	l := listen(t, c, address)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if _, err := c.List(); !errors.Is(err, ErrAway) {
		t.Errorf("a killed holder says %v", err)
	}
	greet(t, address, "without a holder")
	command(t, path)
	name := Socket{"tcp", address}
	if err := c.Adopt(name, l.(*net.TCPListener)); err != nil {
		t.Fatal(err)
	}
	if err := c.Adopt(name, l.(*net.TCPListener)); err != nil {
		t.Errorf("a second time: %v", err)
	}
	l.Close()
	if word := hear(t, listen(t, c, address)); word != "without a holder" {
		t.Error(word)
	}
}

// Only what a name says is taken under it.
func TestOnlyTheSocketOfANameIsAdopted(t *testing.T) {
	path, _ := start(t, 0)
	c := NewClient(path)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn := greet(t, l.Addr().String(), "hello").(*net.TCPConn)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for name, given := range map[Socket]syscall.Conn{
		{"tcp", freeAddress(t)}:                    l.(*net.TCPListener),
		{"udp", l.Addr().String()}:                 l.(*net.TCPListener),
		{"tcp", fmt.Sprintf(":%d", port)}:          l.(*net.TCPListener),
		{"tcp", fmt.Sprintf("127.0.0.2:%d", port)}: l.(*net.TCPListener),
		{"tcp", conn.LocalAddr().String()}:         conn,
		{"tcp", "127.0.0.1:80"}:                    file,
	} {
		if err := c.Adopt(name, given); err == nil || errors.Is(err, ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if held := list(t, path); len(held) != 0 {
		t.Errorf("%v", held)
	}
}

// A successor has every socket, also what waits at it, and whoever asks by the same path; its predecessor ends.
func TestASuccessorTakesEverythingOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hold.sock")
	first := command(t, path)
	c := NewClient(path)
	const many = pageSockets + 5
	var addresses []string
	for range many {
		address := freeAddress(t)
		l, err := c.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		greet(t, address, "before "+address)
		addresses = append(addresses, address)
	}
	command(t, path)
	if err := first.Wait(); err != nil {
		t.Errorf("the predecessor ended with %v", err)
	}
	if held := list(t, path); len(held) != many {
		t.Fatalf("%d are held", len(held))
	}
	for _, address := range addresses {
		greet(t, address, "after")
		if word := hear(t, listen(t, c, address)); word != "before "+address {
			t.Errorf("%s: %q", address, word)
		}
	}
}

// One that dies in the middle leaves the predecessor as it was.
func TestASuccessorThatDiesChangesNothing(t *testing.T) {
	path, ended := start(t, 0)
	address := freeAddress(t)
	l := listen(t, NewClient(path), address)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_, passed, err := exchange(conn.(*net.UnixConn), request{Do: "hand"})
	if err != nil || len(passed) != 2 {
		t.Fatal(len(passed), err)
	}
	closeAll(passed)
	conn.Close()
	if held := list(t, path); len(held) != 1 {
		t.Errorf("%v", held)
	}
	greet(t, address, "still")
	if word := hear(t, l); word != "still" {
		t.Error(word)
	}
	select {
	case err := <-ended:
		t.Errorf("the holder ended with %v", err)
	default:
	}
}

// Whatever arrives, the holder goes on, keeps no descriptor that it was not asked to keep, and ends that connection.
func TestMalformedRequestsEndTheirConnection(t *testing.T) {
	path, _ := start(t, 0)
	dial := func() *net.UnixConn {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(wait))
		return conn.(*net.UnixConn)
	}
	ends := func(conn *net.UnixConn) bool {
		_, err := io.Copy(io.Discard, conn)
		return err == nil || errors.Is(err, syscall.ECONNRESET)
	}
	for _, text := range []string{
		"\n", "{}\n", "[]\n", "null\n", "x\n", `{"do":"format"}` + "\n", `{"do":"list"}{"do":"list"}` + "\n", "\x00\x01\n",
		`{"do":"list"}` + "\n" + `{"do":"list"}` + "\n", `{"do":"list","from":-1}` + "\n", `{"do":"list","from":9}` + "\n",
		`{"do":"handed"}` + "\n", `{"do":"adopt","network":"tcp","address":":80"}` + "\n",
		`{"do":"open","address":"` + strings.Repeat("1", 2*maxRequest) + `"}` + "\n",
		strings.Repeat("x", 2*maxRequest), `{"do":`,
	} {
		conn := dial()
		_, _ = io.WriteString(conn, text)
		if !ends(conn) {
			t.Errorf("%.60q does not end the connection", text)
		}
	}
	// Descriptors where none belong, and more than there is room for: a pipe tells whether one was kept.
	for _, count := range []int{1, 2, pageSockets + 40} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := write.SyscallConn()
		var fd int
		_ = raw.Control(func(descriptor uintptr) { fd = int(descriptor) })
		given := make([]int, count)
		for i := range given {
			given[i] = fd
		}
		conn := dial()
		if _, _, err := conn.WriteMsgUnix([]byte(`{"do":"list"}`+"\n"), unix.UnixRights(given...), nil); err != nil {
			t.Fatal(err)
		}
		if !ends(conn) {
			t.Errorf("%d descriptors do not end the connection", count)
		}
		write.Close()
		_ = read.SetReadDeadline(time.Now().Add(wait))
		if _, err := read.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%d descriptors: %v", count, err)
		}
		read.Close()
	}
	if held := list(t, path); len(held) != 0 {
		t.Errorf("%v", held)
	}
}

func TestOnlyItsUserAndRootMayAsk(t *testing.T) {
	for _, c := range []struct {
		peer, own int
		want      bool
	}{{1000, 1000, true}, {0, 1000, true}, {1001, 1000, false}, {1000, 0, false}, {0, 0, true}} {
		if allows(c.peer, c.own) != c.want {
			t.Errorf("%d at one of %d", c.peer, c.own)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	// Another user gets nothing, even where the rights of folder and socket would let it in.
	path, _ := start(t, 0)
	for _, each := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := os.Chmod(each, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(filepath.Dir(path), "hold")
	content, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--socket", path, "--list")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "does not respond") {
		t.Errorf("%v %s", err, said)
	}
}

func TestSocketsAndConnectionsAreBounded(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "hold.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	full := map[Socket]int{}
	for i := range MaxSockets {
		full[Socket{"udp", fmt.Sprintf(":%d", i+1)}] = -1
	}
	h, err := New(listener, full)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(ctx, 0)
	}()
	defer func() {
		cancel()
		<-done
	}()
	path := listener.Addr().String()
	c := NewClient(path)
	if held, err := c.List(); err != nil || len(held) != MaxSockets {
		t.Fatal(len(held), err)
	}
	if _, err := c.Listen(freeAddress(t)); err == nil || err.Error() != errFull.Error() {
		t.Errorf("one more: %v", err)
	}
	var open []net.Conn
	for range maxConnections {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	last := open[len(open)-1]
	_ = last.SetReadDeadline(time.Now().Add(wait))
	if _, err := last.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one connection more: %v", err)
	}
	for _, conn := range open {
		conn.Close()
	}
	until(t, "there is room again", func() bool { _, err := NewClient(path).List(); return err == nil })
}

// One that a supervisor started ends by itself when everybody is gone, with its socket.
func TestAHolderWithoutAnybodyEnds(t *testing.T) {
	path, ended := start(t, 50*time.Millisecond)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
}

func TestTheSocketIsPrivate(t *testing.T) {
	path, _ := start(t, 0)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"do":"list"}`))
	f.Add([]byte(`{"do":"open","network":"udp","address":":x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		ours, theirs, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		defer theirs.Close()
		_, _ = ours.Write(line)
		_ = ours.CloseWrite()
		var r request
		if _, err := receive(theirs, maxRequest, &r); err == nil && r.Do == "open" {
			_, _, _ = r.Socket.parse()
		}
	})
}

func pair() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			return nil, nil, err
		}
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1], nil
}
