package listen

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/hold"
)

// startHolder serves a holder at a path until the test ends.
func startHolder(t *testing.T, path string) *hold.Client {
	t.Helper()
	h, err := hold.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(ctx, 0)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return hold.NewClient(path)
}

func tcpAt(port uint16) hold.Socket { return hold.Socket{Network: "tcp", Address: at(port)} }

func untilHeld(t *testing.T, client *hold.Client, want ...hold.Socket) {
	t.Helper()
	var held []hold.Socket
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		held, _ = client.List()
		if len(held) == len(want) && !slices.ContainsFunc(want, func(s hold.Socket) bool { return !slices.Contains(held, s) }) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%v are held, not %v", held, want)
		}
	}
}

// What a process listened on stays open when it ends; what it closes while it serves does not.
func TestTheHolderKeepsPortsOfAProcessThatEnds(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			client := startHolder(t, filepath.Join(t.TempDir(), "hold.sock"))
			l := listenHeld(t, scheme == "https", Limits{}, client)
			extra := freePort(t)
			ports := []uint32{uint32(extra)}
			set := func(ports []uint32) {
				if scheme == "https" {
					l.set(nil, ports)
				} else {
					l.set(ports, nil)
				}
			}
			set(ports)
			untilHeld(t, client, tcpAt(l.base), tcpAt(extra))
			if _, err := ask(clientFor(t, false), scheme, extra); err != nil {
				t.Fatal(err)
			}
			set(nil)
			untilHeld(t, client, tcpAt(l.base))
			l.end()
			untilHeld(t, client, tcpAt(l.base))
			if refused(l.base) {
				t.Error("the port closed with its process")
			}
		})
	}
}

// Without a holder the ports open all the same, and one that comes later gets them.
func TestAHolderThatComesLaterGetsThePorts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hold.sock")
	l := listenHeld(t, false, Limits{}, hold.NewClient(path))
	if _, err := ask(clientFor(t, false), "http", l.base); err != nil {
		t.Fatal(err)
	}
	status := &edgev1.GetStatusResponse{}
	l.ports.holder.FillStatus(status)
	if warnings := status.GetWarnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "does not respond") {
		t.Errorf("%q", warnings)
	}
	untilHeld(t, startHolder(t, path), tcpAt(l.base))
	l.end()
	if refused(l.base) {
		t.Error("the port closed with its process")
	}
}

// What a former process had and this one does not want is closed, once all of its own ports are known.
func TestWhatNobodyNeedsIsClosed(t *testing.T) {
	client := startHolder(t, filepath.Join(t.TempDir(), "hold.sock"))
	former := freePort(t)
	listener, err := client.Listen(at(former))
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	l := listenHeld(t, false, Limits{}, client)
	l.ports.holder.keep(l.ports.held())
	untilHeld(t, client, tcpAt(former), tcpAt(l.base))
	l.ports.mu.Lock()
	l.ports.changed = time.Time{}
	l.ports.mu.Unlock()
	l.ports.look()
	untilHeld(t, client, tcpAt(l.base))
	if !refused(former) {
		t.Error("the former port is open")
	}
}

// A port that the holder cannot open is one problem of many.
func TestPortsTheHolderCannotOpenAreReported(t *testing.T) {
	client := startHolder(t, filepath.Join(t.TempDir(), "hold.sock"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l := listenHeld(t, false, Limits{}, client)
	number := portOf(taken.Addr())
	l.set([]uint32{uint32(number)}, nil)
	var problems []*edgev1.PortProblem
	for limit := time.Now().Add(20 * time.Second); len(problems) == 0 && time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		problems = l.problems()
	}
	if len(problems) != 1 || problems[0].GetPort() != uint32(number) || problems[0].GetReason() != "address already in use" {
		t.Errorf("%v", problems)
	}
	if _, err := ask(clientFor(t, false), "http", l.base); err != nil {
		t.Error(err)
	}
}
