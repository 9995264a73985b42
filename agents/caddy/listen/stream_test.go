package listen

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// stream is one that a listener accepted, with its client.
func stream(t *testing.T, r *Registry, proxy bool, http *configv1.ClientIp) (client *net.TCPConn, edge *Stream) {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(newCore(t, http), r).WrapStreams(raw, func(*exchange.Tables) bool { return proxy })
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if edge, err = l.AcceptStream(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { edge.Close() })
	return c.(*net.TCPConn), edge
}

// pipes counts the pipes of this process: each splice holds one.
func pipes() (n int) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		if to, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil && strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}

// Later, pipes of former splices may wait for the next ones.
var pipesAtStart = pipes()

const header = "PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\n"

// Two streams are joined within the kernel, in both directions, and bytes that came with the PROXY header come first.
func TestStreamsAreSpliced(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	finish := map[string]func(){}
	for name, copied := range map[string]func(to, from *Stream) (int64, error){
		"io.Copy":                         func(to, from *Stream) (int64, error) { return io.Copy(to, from) },
		"ReadFrom":                        func(to, from *Stream) (int64, error) { return to.ReadFrom(from) },
		"to the connection of the system": func(to, from *Stream) (int64, error) { return io.Copy(to.NetConn(), from) },
		"from the connection of the system": func(to, from *Stream) (int64, error) {
			if err := from.Start(); err != nil {
				return 0, err
			}
			ahead, err := io.CopyN(to, from, 5)
			if err != nil {
				return ahead, err
			}
			n, err := io.Copy(to, from.NetConn())
			return ahead + n, err
		},
	} {
		r := NewRegistry()
		sender, from := stream(t, r, true, &configv1.ClientIp{})
		receiver, to := stream(t, r, false, &configv1.ClientIp{})
		for _, s := range []*Stream{from, to} {
			if _, ok := s.NetConn().(*net.TCPConn); !ok {
				t.Fatalf("%s: %T", name, s.NetConn())
			}
		}
		if _, err := io.WriteString(sender, header+"first"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			n, err := copied(to, from)
			if err == nil && n != int64(len("first")+len(payload)) {
				err = fmt.Errorf("%d bytes", n)
			}
			_ = to.CloseWrite()
			done <- err
		}()
		first := make([]byte, 5)
		if _, err := io.ReadFull(receiver, first); err != nil || string(first) != "first" {
			t.Fatalf("%s: %q, %v", name, first, err)
		}
		finish[name] = func() {
			go func() {
				_, _ = sender.Write(payload)
				_ = sender.CloseWrite()
			}()
			if got, err := io.ReadAll(receiver); err != nil || !bytes.Equal(got, payload) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if from.Proxied().String() != "192.0.2.7" || to.Proxied().IsValid() {
				t.Errorf("%s: %v, %v", name, from.Proxied(), to.Proxied())
			}
		}
	}
	until(t, "a pipe for each splice", func() bool { return pipes() >= pipesAtStart+len(finish) })
	for _, f := range finish {
		f()
	}
}

// Whether a PROXY header comes is a matter of the listener, whatever the setting for HTTP is.
func TestProxyHeaderOfAStreamListener(t *testing.T) {
	mode := &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_PROXY_PROTOCOL}
	client, edge := stream(t, NewRegistry(), false, mode)
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(edge, got); err != nil || string(got) != "hello" || edge.client(edge.core.Tables()) != edge.Peer {
		t.Errorf("%q, %v", got, err)
	}
	for want, sent := range map[string]string{"192.0.2.7": header + "hello", "": "hello, without a header\r\n"} {
		client, edge := stream(t, NewRegistry(), true, &configv1.ClientIp{})
		if edge.client(edge.core.Tables()).IsValid() {
			t.Error("known before the header")
		}
		if _, err := io.WriteString(client, sent); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadFull(edge, got)
		if (err == nil) != (want != "") || want != "" && (string(got) != "hello" || edge.client(edge.core.Tables()).String() != want) {
			t.Errorf("%q: %q, %v", sent, got, err)
		}
	}
}

// The time for the first request ends with the PROXY header; after it, a stream may be silent.
func TestStreamsWaitForNoRequest(t *testing.T) {
	r := NewRegistry()
	r.limiter.set(Limits{HeaderTime: time.Minute})
	_, silent := stream(t, r, false, &configv1.ClientIp{})
	client, named := stream(t, r, true, &configv1.ClientIp{})
	_, unnamed := stream(t, r, true, &configv1.ClientIp{})
	if _, err := io.WriteString(client, header); err != nil {
		t.Fatal(err)
	}
	if err := named.Start(); err != nil {
		t.Fatal(err)
	}
	abort(r.limiter.expired(time.Now().Add(time.Hour)), nil)
	if silent.closed.Load() || named.closed.Load() || !unnamed.closed.Load() {
		t.Error(silent.closed.Load(), named.closed.Load(), unnamed.closed.Load())
	}
	// Deadlines are the user's, also while nothing is read.
	if err := silent.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, silent); !isTimeout(err) {
		t.Error(err)
	}
}
