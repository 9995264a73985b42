package hold

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The longest path that a socket can have.
const maxPath = 107

// Run is the command `svc-caddy hold`. It returns its exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("svc-caddy hold", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("socket", "", "Unix socket over which the data plane asks for sockets; required")
	linger := flags.Duration("linger", 0, "end when nobody has been connected for this time; 0: never")
	list := flags.Bool("list", false, "print what the holder at the socket has, and end")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if !filepath.IsAbs(*path) || len(*path) > maxPath || flags.NArg() > 0 || *linger < 0 {
		fmt.Fprintf(stderr, "svc-caddy hold: --socket must be an absolute path of at most %d bytes, --linger not negative\n", maxPath)
		return 2
	}
	var err error
	if *list {
		err = print(stdout, *path)
	} else {
		err = serve(*path, *linger, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "svc-caddy hold:", err)
		return 1
	}
	return 0
}

func print(out io.Writer, path string) error {
	held, err := NewClient(path).List()
	for _, each := range held {
		fmt.Fprintln(out, each)
	}
	return err
}

func serve(path string, linger time.Duration, log io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	h, err := Start(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "svc-caddy hold: holding %d sockets for %s\n", len(h.held), path)
	if err := h.Serve(ctx, linger); err != nil && !errors.Is(err, errHanded) {
		return err
	}
	return nil
}

// Start makes a holder at a path. Where one runs, its sockets are taken over, and it ends.
func Start(path string) (*Holder, error) {
	conn, err := net.DialTimeout("unix", path, messageTime)
	if err == nil {
		defer conn.Close()
		return takeOver(conn.(*net.UnixConn))
	}
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Nobody else may connect at any moment.
	former := syscall.Umask(0o177)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(former)
	if err != nil {
		return nil, err
	}
	return New(listener, map[Socket]int{})
}

// takeOver takes the sockets of a holder, that over which it is asked included.
func takeOver(conn *net.UnixConn) (h *Holder, err error) {
	own, held := -1, map[Socket]int{}
	defer func() {
		if err != nil {
			_ = unix.Close(own)
			for _, fd := range held {
				_ = unix.Close(fd)
			}
			err = fmt.Errorf("cannot take over from the holder that runs: %w", err)
		}
	}()
	for more := true; more; {
		answer, passed, err := exchange(conn, request{Do: "hand", From: len(held)})
		if err != nil {
			return nil, err
		}
		if err := answer.err(); err != nil {
			closeAll(passed)
			return nil, err
		}
		if own < 0 && len(passed) > 0 {
			own, passed = passed[0], passed[1:]
		}
		if len(passed) != len(answer.Sockets) || answer.More && len(passed) == 0 {
			closeAll(passed)
			return nil, errMalformed
		}
		for i, name := range answer.Sockets {
			held[name] = passed[i]
		}
		more = answer.More
	}
	file := os.NewFile(uintptr(own), conn.RemoteAddr().String())
	own = -1
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	asked, ok := listener.(*net.UnixListener)
	if !ok {
		_ = listener.Close()
		return nil, errMalformed
	}
	// A listener that was passed on does not remove its path by itself.
	asked.SetUnlinkOnClose(true)
	if h, err = New(asked, held); err != nil {
		_ = asked.Close()
		return nil, err
	}
	answer, _, err := exchange(conn, request{Do: "handed"})
	if err == nil {
		err = answer.err()
	}
	if err != nil {
		asked.SetUnlinkOnClose(false)
		_, _ = asked.Close(), unix.Close(h.own)
		return nil, err
	}
	return h, nil
}
