package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// noting notes the deadlines that reach a connection.
type noting struct {
	net.Conn
	mu        sync.Mutex
	deadlines []time.Time
	reads     int
}

func (n *noting) SetReadDeadline(t time.Time) error {
	n.mu.Lock()
	n.deadlines = append(n.deadlines, t)
	n.mu.Unlock()
	return n.Conn.SetReadDeadline(t)
}

func (n *noting) Read(p []byte) (int, error) {
	n.mu.Lock()
	n.reads++
	n.mu.Unlock()
	return n.Conn.Read(p)
}

func (n *noting) begun() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reads
}

func readsOver(t *testing.T) (*reads, *noting, net.Conn) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	return &reads{}, &noting{Conn: server}, client
}

func (r *reads) isWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

func TestADeadlineIsHandedOnWhereItComesBeforeTheOneThatHolds(t *testing.T) {
	r, conn, client := readsOver(t)
	now := time.Now()
	steps := []struct {
		at     time.Time
		handed bool
	}{
		{now.Add(time.Hour), true},
		{now.Add(2 * time.Hour), false},
		{time.Time{}, false},
		{now.Add(time.Minute), true},
		{now.Add(time.Minute), false},
	}
	var want []time.Time
	for i, step := range steps {
		if err := r.setDeadline(conn, step.at); err != nil {
			t.Fatal(err)
		}
		go client.Write([]byte("ab"))
		if n, err := r.read(conn, make([]byte, 8), false); n != 2 || err != nil {
			t.Fatal(i, n, err)
		}
		if step.handed {
			want = append(want, step.at)
		}
		if !slices.Equal(conn.deadlines, want) {
			t.Fatalf("step %d: %v, not %v", i, conn.deadlines, want)
		}
	}
}

func TestAReadThatADeadlineOfBeforeEndsIsRepeated(t *testing.T) {
	for name, then := range map[string]time.Time{"without a deadline": {}, "under a later one": time.Now().Add(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			r, conn, client := readsOver(t)
			// It holds, and passes while the read is under way.
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			r.holds, r.wanted = conn.deadlines[0], then
			go func() {
				for conn.begun() < 2 {
					time.Sleep(time.Millisecond)
				}
				client.Write([]byte("ab"))
			}()
			if n, err := r.read(conn, make([]byte, 8), false); n != 2 || err != nil {
				t.Fatal(n, err)
			}
		})
	}
}

func TestADeadlineEndsAReadThatIsUnderWay(t *testing.T) {
	r, conn, _ := readsOver(t)
	failed := make(chan error)
	go func() {
		_, err := r.read(conn, make([]byte, 8), false)
		failed <- err
	}()
	until(t, "the read begins", func() bool { return conn.begun() == 1 })
	_ = r.setDeadline(conn, longAgo)
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	// As servers do between two requests.
	_ = r.setDeadline(conn, time.Time{})
	go func() {
		_, err := r.read(conn, make([]byte, 8), false)
		failed <- err
	}()
	until(t, "the next read waits again", func() bool { return conn.begun() >= 3 })
	conn.Close()
	if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
}

func TestALookForTheEndOfTheClientIsPutOff(t *testing.T) {
	var (
		r      *reads
		conn   *noting
		client net.Conn
	)
	look := func() (err error) {
		_, err = r.read(conn, make([]byte, 1), true)
		return err
	}
	for _, c := range []struct {
		name string
		// What happens while it is put off.
		then func()
		want error
		// Whether the connection is read.
		read bool
	}{
		{"and never begins when its answer ends", func() { _ = r.setDeadline(conn, longAgo) }, os.ErrDeadlineExceeded, false},
		{"and begins after a moment, and finds the end of the client", func() { client.Close() }, io.EOF, true},
		{"and begins with a deadline", func() { _ = r.setDeadline(conn, time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded, true},
		{"and ends with the connection", func() { conn.Close(); r.close() }, io.ErrClosedPipe, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, conn, client = readsOver(t)
			ended := make(chan error)
			go func() { ended <- look() }()
			until(t, "it waits", r.isWaiting)
			c.then()
			if err := <-ended; !errors.Is(err, c.want) {
				t.Fatalf("%v, not %v", err, c.want)
			}
			if read := conn.begun() > 0; read != c.read {
				t.Fatalf("the connection was read: %v", read)
			}
			if !c.read && len(conn.deadlines) > 0 {
				t.Fatal("a deadline was set")
			}
		})
	}
}

func TestALookThatComesAfterTheEndOfItsAnswerReadsNothing(t *testing.T) {
	r, conn, _ := readsOver(t)
	// The goroutine that looks may begin to run only then.
	_ = r.setDeadline(conn, longAgo)
	if _, err := r.read(conn, make([]byte, 1), true); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestConnectionsThatPutNothingOffAreNotLookedAt(t *testing.T) {
	r, conn, _ := readsOver(t)
	for range 3 {
		ended := make(chan struct{})
		go func() {
			_, _ = r.read(conn, make([]byte, 1), true)
			close(ended)
		}()
		until(t, "it waits", r.isWaiting)
		_ = r.setDeadline(conn, longAgo)
		<-ended
		_ = r.setDeadline(conn, time.Time{})
	}
	until(t, "it leaves the list", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.listed
	})
}
