package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
)

func init() { core.API = Serve }

const maxMessageBytes = 64 << 20

// The listener outlives every load of a Caddy configuration, like what it serves.
var process struct {
	sync.Mutex
	socket string
}

// Serve serves core on the socket for the rest of the process; calling it again with the same socket does nothing.
func Serve(c *core.Core, socket string) error {
	process.Lock()
	defer process.Unlock()
	if process.socket != "" {
		if process.socket == socket {
			return nil
		}
		return fmt.Errorf("the agent's socket is %s and cannot move to %s while the process runs", process.socket, socket)
	}
	ln, err := Listen(socket)
	if err != nil {
		return err
	}
	process.socket = socket
	go func() { _ = NewServer(c).Serve(ln) }()
	return nil
}

// Listen opens the socket for its owner alone. A socket that nobody serves any more is removed first.
func Listen(socket string) (net.Listener, error) {
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The folder is private before the socket exists, so there is no moment in which others could reach it.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	if err := removeStale(socket); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

func removeStale(socket string) error {
	info, err := os.Lstat(socket)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", socket)
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another process listens on %s", socket)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot find out whether %s is in use: %w", socket, err)
	}
	return os.Remove(socket)
}

// unlimited takes the time limit for reading a request off a call that answers for as long as it likes: the server
// watches the connection under it, and would take its end for the client's.
func unlimited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		next.ServeHTTP(w, r)
	})
}

// NewServer returns a server of the calls that features registered, for HTTP/1.1 and HTTP/2 without TLS.
func NewServer(c *core.Core) *http.Server {
	mux := http.NewServeMux()
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, p any) error {
			return connect.NewError(connect.CodeInternal, fmt.Errorf("panic: %v", p))
		}),
	}
	for _, call := range core.Calls() {
		handler := call.Handler(c, options...)
		if call.Stream {
			handler = unlimited(handler)
		}
		mux.Handle(call.Procedure, handler)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           mux,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}
