package exchange

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// bodyOf is an exchange with a body of these pieces; announced is its length, -1 for an unknown one.
func bodyOf(announced int64, pieces ...string) *Exchange {
	readers := make([]io.Reader, len(pieces))
	for i, piece := range pieces {
		readers[i] = strings.NewReader(piece)
	}
	r := httptest.NewRequest("POST", "/", io.NopCloser(io.MultiReader(readers...)))
	r.ContentLength = announced
	x := &Exchange{}
	x.Begin(httptest.NewRecorder(), r)
	return x
}

// Whoever reads a body gets all of it, whatever was looked at before; and again, while nothing was read beyond that.
func TestLookTakesNothingFromABody(t *testing.T) {
	for _, announced := range []int64{9, -1} {
		for look := range 12 {
			b := &bodyOf(announced, "abc", "def", "ghi").Body
			head, whole, err := b.Look(look)
			if err != nil || string(head) != "abcdefghi"[:min(look, 9)] || whole && look < 9 || announced == 9 && look >= 9 && !whole || look > 9 && !whole {
				t.Fatalf("look at %d of %d: %q %v %v", look, announced, head, whole, err)
			}
			if look > 3 {
				first := make([]byte, 2)
				if _, err := io.ReadFull(b, first); err != nil || !b.Rewind() {
					t.Fatalf("%q %v", first, err)
				}
			}
			all, err := io.ReadAll(b)
			if err != nil || string(all) != "abcdefghi" {
				t.Fatalf("after a look at %d: %q %v", look, all, err)
			}
			if b.Rewind() != (look > 9 || announced == 9 && look >= 9) {
				t.Errorf("after a look at %d of %d the body can be read again: %v", look, announced, b.Rewind())
			}
		}
	}
}

func TestBodiesHaveLimits(t *testing.T) {
	if err := bodyOf(6, "abcdef").Body.Bound(5, 0); !errors.Is(err, ErrBodyTooLarge) {
		t.Errorf("announced: %v", err)
	}
	b := &bodyOf(-1, "abc", "def").Body
	if err := b.Bound(5, 0); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(b); !errors.Is(err, ErrBodyTooLarge) {
		t.Errorf("while it comes: %v", err)
	}
	b = &bodyOf(-1, "abc", "def").Body
	_ = b.Bound(5, 0)
	if _, _, err := b.Look(100); !errors.Is(err, ErrBodyTooLarge) {
		t.Errorf("in a look: %v", err)
	}
	if _, err := io.ReadAll(&bodyOf(7, "abcdef").Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shorter than announced: %v", err)
	}
	if head, whole, err := bodyOf(0).Body.Look(10); len(head) != 0 || !whole || err != nil {
		t.Errorf("no body: %q %v %v", head, whole, err)
	}
}

// A body has to bring something: a byte now and then is not enough, whatever pauses the site allows. What the edge itself
// waits for does not count.
func TestBodiesHaveAMinimumRate(t *testing.T) {
	defer func(before time.Duration) { bodyTimes.window = before }(bodyTimes.window)
	bodyTimes.window = 1500 * time.Millisecond
	ends := make(chan error, 1)
	var pauses bool
	var longest time.Duration
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &Exchange{}
		x.Begin(w, r)
		if r.URL.Path == "/may-pause" {
			x.Body.Converse(time.Minute)
		}
		_ = x.Body.Bound(0, time.Minute)
		x.Body.Longest = longest
		if r.URL.Path == "/held" {
			if whole, err := x.Body.GatherMore(0, nil); whole || err != nil {
				t.Error(whole, err)
			}
		}
		var err error
		for buffer := make([]byte, 16); err == nil; {
			if _, err = x.Body.Read(buffer); pauses {
				// Somebody behind the edge takes his time.
				time.Sleep(bodyTimes.window + 100*time.Millisecond)
			}
		}
		ends <- err
	}))
	defer server.Close()
	send := func(path string, piece string, every time.Duration, times int) error {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: "+decimal(len(piece) * times)[0]+"\r\n\r\n")
		for range times {
			if _, err := io.WriteString(c, piece); err != nil {
				break
			}
			time.Sleep(every)
		}
		return <-ends
	}
	if err := send("/", "x", 10*time.Millisecond, 1000); !errors.Is(err, ErrBodySlow) {
		t.Errorf("a byte now and then: %v", err)
	}
	if err := send("/may-pause", "x", 10*time.Millisecond, 200); err != io.EOF {
		t.Errorf("where silence is normal: %v", err)
	}
	if err := send("/", strings.Repeat("x", 4096), 0, 2); err != io.EOF {
		t.Errorf("enough: %v", err)
	}
	// At a kilobyte a second or so a body may come, but not while an origin waits for it.
	if err := send("/", strings.Repeat("x", 64), 10*time.Millisecond, 200); err != io.EOF {
		t.Errorf("a slow body: %v", err)
	}
	if err := send("/held", strings.Repeat("x", 64), 10*time.Millisecond, 1000); !errors.Is(err, ErrBodySlow) {
		t.Errorf("a slow body that holds an origin: %v", err)
	}
	longest = 100 * time.Millisecond
	if err := send("/", strings.Repeat("x", 64), 10*time.Millisecond, 1000); !errors.Is(err, ErrBodySlow) {
		t.Errorf("a body that takes too long in all: %v", err)
	}
	longest = 0
	pauses = true
	if err := send("/", strings.Repeat("x", 64), 0, 1); err != io.EOF {
		t.Errorf("an edge that waits for others: %v", err)
	}
}

// gather is a sink of a test.
type gather struct {
	bytes.Buffer
	flushes []int
}

func (g *gather) Write(p []byte) error {
	g.Buffer.Write(p)
	return nil
}

func (g *gather) Flush() error {
	g.flushes = append(g.flushes, g.Len())
	return nil
}

type pieces []string

// CopyTo writes the pieces, with a flush between them.
func (s pieces) CopyTo(sink Sink) error {
	for i, piece := range s {
		if i > 0 {
			if err := sink.Flush(); err != nil {
				return err
			}
		}
		if err := sink.Write([]byte(piece)); err != nil {
			return err
		}
	}
	return nil
}

// Close has nothing to give up.
func (pieces) Close() {}

// Answers are pushed, and flushed where their source says so.
func TestAnswersArePushed(t *testing.T) {
	w := httptest.NewRecorder()
	x := &Exchange{}
	x.Begin(w, httptest.NewRequest("GET", "/", nil))
	a := x.RespondFrom(FromOrigin, 200)
	a.Body = pieces{"a", "b"}
	if !x.Send(a) || w.Body.String() != "ab" || !w.Flushed {
		t.Errorf("%q", w.Body)
	}
	var g gather
	if err := (pieces{"a", "b"}).CopyTo(&g); err != nil || len(g.flushes) != 1 || g.flushes[0] != 1 {
		t.Errorf("%v %v", g.flushes, err)
	}
}

// bounds counts how often writes were given time.
type bounds struct{ times int }

func (b *bounds) BoundWrites() { b.times++ }

func (b *bounds) Gather(int) {}

func (b *bounds) Lasts(time.Duration) {}

func (b *bounds) MayWait(int64) bool { return false }

func (b *bounds) TakesFiles() bool { return true }

func (b *bounds) HoldHead() {}

func (b *bounds) ReleaseHead() {}

// A file leaves in pieces, each with a time of its own.
func TestFilesLeaveInPieces(t *testing.T) {
	path := t.TempDir() + "/file"
	content := bytes.Repeat([]byte("0123456789abcdef"), 3*filePiece/16)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := readingRecorder{httptest.NewRecorder()}
	x := &Exchange{}
	x.Begin(w, httptest.NewRequest("GET", "/", nil))
	var writes bounds
	x.Writes = &writes
	x.sink.x = x
	var sink Sink = &x.sink
	if !sink.(FileSink).TakesFiles() {
		t.Error("no files are taken")
	}
	const from = 17
	if err := sink.(FileSink).WriteFile(f, from, int64(len(content)-from)); err != nil || !bytes.Equal(w.Body.Bytes(), content[from:]) || writes.times != 3 {
		t.Errorf("%d bytes, %d times, %v", w.Body.Len(), writes.times, err)
	}
	if err := sink.(FileSink).WriteFile(f, from, int64(len(content))); err == nil {
		t.Error("a file that is too short is taken for whole")
	}
}

// readingRecorder reads files by itself, as the writers of net/http do.
type readingRecorder struct{ *httptest.ResponseRecorder }

func (r readingRecorder) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r.ResponseRecorder}, from)
}

// A panic in a goroutine of an exchange ends neither the process nor the waiting for it, and is told by name.
func TestGoroutinesContainTheirPanics(t *testing.T) {
	told := make(chan string, 1)
	OnPanic(func(doing string, p any, _ []byte) { told <- doing + ": " + p.(string) })
	defer OnPanic(func(string, any, []byte) {})
	failed := make(chan struct{})
	Go("uploading", func() { panic("in the upload") }, func() { close(failed) })
	<-failed
	if got := <-told; got != "uploading: in the upload" {
		t.Error(got)
	}
}

// Facts of a finished exchange are none of the next one's.
func TestFactsEndWithTheirExchange(t *testing.T) {
	type note struct{ text string }
	fact := NewFact[note]()
	asked := 0
	lazy := NewLazyFact(func(*Exchange) int { asked++; return 7 })
	x := &Exchange{}
	x.Begin(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if _, known := fact.Known(x); known || fact.Peek(x) != nil {
		t.Error("known before")
	}
	first := fact.Of(x)
	first.text = "one"
	if v, known := fact.Known(x); !known || v.text != "one" || fact.Peek(x) != first || lazy.Of(x) != 7 || lazy.Of(x) != 7 || asked != 1 {
		t.Errorf("%v %v, asked %d times", v, known, asked)
	}
	x.Reset()
	if v, known := fact.Known(x); known || v.text != "" || fact.Peek(x) != nil {
		t.Errorf("%v %v", v, known)
	}
	if fact.Of(x) != first || first.text != "" || lazy.Of(x) != 7 || asked != 2 {
		t.Errorf("%v, asked %d times", first, asked)
	}
}

// A rewrite's result is an encoded path in canonical form: nothing in it ends the path or the request line.
func TestRewrittenTargets(t *testing.T) {
	for _, c := range []struct{ path, query, want string }{
		{"/a b", "", "/a%20b"}, {"/a HTTP/1.1\r\nX: y", "", "/a%20HTTP/1.1%0D%0AX:%20y"}, {"/a?b#c", "x=1", "/a%3Fb%23c?x=1"},
		{"/a%2Fb%25", "", "/a%2Fb%25"}, {"a", "", "/a"}, {"//x", "", "/x"},
		{"/a/../b//c", "", "/b/c"}, {"/x/%2e%2e/%61%20b", "", "/a%20b"}, {"/a%5Cb", "", "/a%5Cb"}, {"/ü\xff", "", "/%C3%BC%FF"}, {"/a", "x=%zz y&b#", "/a?x=%zz%20y&b%23"},
	} {
		if got := RewrittenTarget(c.path, c.query); got.Raw != c.want {
			t.Errorf("%q?%q: %q, not %q", c.path, c.query, got.Raw, c.want)
		}
	}
}
