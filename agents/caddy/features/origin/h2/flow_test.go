package h2

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// readBody reads the DATA of a stream to its end.
func (p *peer) readBody(id uint32) string {
	p.t.Helper()
	var b strings.Builder
	for {
		f := p.next(http2.FrameData).(*http2.DataFrame)
		if f.StreamID != id {
			p.t.Fatalf("DATA of stream %d", f.StreamID)
		}
		b.Write(f.Data())
		if f.StreamEnded() {
			return b.String()
		}
	}
}

func TestBodiesGoOutWithinTheWindows(t *testing.T) {
	c, p := begin(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	small := open(t, c, func(r *Request) { r.Body = []byte("0123456789") })
	id := p.request()
	if body := p.readBody(id); body != "0123456789" {
		t.Error(body)
	}
	p.respond(id, "ok")
	wantBody(t, small, "ok")

	s := open(t, c, streamed)
	id = p.request()
	sent := make(chan error, 1)
	go func() {
		if err := s.Write([]byte("0123456789abcde"), false, long); err != nil {
			sent <- err
			return
		}
		sent <- s.End(AppendField(nil, []byte("X-Sum"), []byte("1")))
	}()
	if f := p.next(http2.FrameData).(*http2.DataFrame); string(f.Data()) != "0123456789" {
		t.Errorf("%q", f.Data())
	}
	// The window may even be less than nothing (RFC 9113 §6.9.2).
	_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 7})
	_ = p.WriteWindowUpdate(id, 5)
	if f := p.next(http2.FrameData).(*http2.DataFrame); string(f.Data()) != "ab" {
		t.Errorf("%q", f.Data())
	}
	_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
	if f := p.next(http2.FrameData).(*http2.DataFrame); string(f.Data()) != "cde" {
		t.Errorf("%q", f.Data())
	}
	trailers := p.next(http2.FrameHeaders).(*http2.HeadersFrame)
	if err := <-sent; err != nil || !trailers.StreamEnded() {
		t.Error(err)
	}
	p.respond(id, "done")
	wantBody(t, s, "done")
}

// A body known beforehand that does not fit goes out beside the response.
func TestLargeKnownBodiesAreLeftToWrite(t *testing.T) {
	c, p := begin(t)
	body := bytes.Repeat([]byte("x"), 40<<10)
	c.Reserve()
	s, rest, err := c.Open(Request{Block: AppendRequest(nil, []byte("PUT"), []byte("https"), []byte("a"), []byte("/x")), Body: body})
	if err != nil || len(rest) != len(body) {
		t.Fatal(len(rest), err)
	}
	go func() { _ = s.Write(rest, true, long) }()
	id := p.request()
	if got := p.readBody(id); got != string(body) {
		t.Error(len(got))
	}
	p.respond(id, "ok")
	wantBody(t, s, "ok")
}

// Streams take turns where the window of the connection is small.
func TestStreamsTakeTurns(t *testing.T) {
	c, p := begin(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	const streams, size = 3, 200 << 10
	var waiting []*Stream
	for range streams {
		waiting = append(waiting, open(t, c, streamed))
		p.request()
	}
	var all sync.WaitGroup
	for _, s := range waiting {
		all.Go(func() { _ = s.Write(make([]byte, size), true, long) })
	}
	got := map[uint32]int{}
	read := func(bytes int) {
		for bytes > 0 {
			f := p.next(http2.FrameData)
			got[f.Header().StreamID] += int(f.Header().Length)
			bytes -= int(f.Header().Length)
		}
	}
	read(firstWindow)
	until(t, "all wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.queue) == streams
	})
	clear(got)
	for range 4 * streams {
		_ = p.WriteWindowUpdate(0, minFrame)
		read(minFrame)
	}
	for _, s := range waiting {
		if n := got[s.id]; n < 3*minFrame || n > 5*minFrame {
			t.Errorf("stream %d sent %d bytes of %v", s.id, n, got)
		}
	}
	_ = p.WriteWindowUpdate(0, 1<<20)
	read(streams*size - firstWindow - 4*streams*minFrame)
	all.Wait()
}

// A body that nobody takes stops at its window, and holds up no other stream.
func TestBodiesThatNobodyTakesHoldUpNoOther(t *testing.T) {
	c, p := begin(t)
	slow := open(t, c)
	id := p.request()
	p.headers(id, false, ":status", "200")
	for range streamWindow / minFrame {
		_ = p.WriteData(id, false, make([]byte, minFrame))
	}
	for range 20 {
		s := open(t, c)
		p.respond(p.request(), strings.Repeat("y", 10000))
		wantBody(t, s, strings.Repeat("y", 10000))
		s.Close()
	}
	_, _ = slow.Header(t.Context(), long)
	for taken := 0; taken < streamWindow; {
		b, _, err := slow.Read(t.Context(), long)
		if err != nil {
			t.Fatal(err)
		}
		taken += len(b)
	}
	// Only what was passed on may come again.
	go func() { _, _, _ = slow.Read(t.Context(), long) }()
	for {
		if f := p.next(http2.FrameWindowUpdate).(*http2.WindowUpdateFrame); f.StreamID == id {
			if f.Increment != streamWindow {
				t.Error(f.Increment)
			}
			break
		}
	}
	_ = p.WriteData(id, true, []byte("end"))
	until(t, "the stream is over", func() bool { return c.InFlight() == 0 })
}

// The window of the connection opens again, also for what nobody wanted.
func TestWindowOfTheConnectionOpensAgain(t *testing.T) {
	c, p := begin(t)
	s := open(t, c)
	id := p.request()
	p.headers(id, false, ":status", "200")
	go func() {
		_, _, _ = readAll(t, s)
	}()
	sent, window := 0, streamWindow
	for again := false; !again; {
		for ; window >= minFrame; window -= minFrame {
			_ = p.WriteData(id, false, make([]byte, minFrame))
			sent += minFrame
		}
		f := p.next(http2.FrameWindowUpdate).(*http2.WindowUpdateFrame)
		if f.StreamID == 0 && f.Increment < connWindow/2 {
			again = true
		} else if f.StreamID == id {
			window += int(f.Increment)
		}
		if sent > connWindow {
			t.Fatal("the window does not open")
		}
	}
	_ = p.WriteData(id, true, nil)
}

// An origin that takes nothing of a body fails the request, and one that wants no more of it does not.
func TestUploadsEnd(t *testing.T) {
	c, p := begin(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	s := open(t, c, streamed)
	p.request()
	if err := s.Write([]byte("x"), false, 10*time.Millisecond); err != ErrSilent {
		t.Error(err)
	}
	s.Cancel(ErrSilent)
	if _, _, err := readAll(t, s); err != ErrSilent {
		t.Error(err)
	}
	s = open(t, c, streamed)
	id := p.request()
	written := make(chan error)
	go func() { written <- s.Write([]byte("x"), false, long) }()
	p.respond(id, "no")
	_ = p.WriteRSTStream(id, http2.ErrCodeNo)
	wantBody(t, s, "no")
	if err := <-written; err != ErrStopped {
		t.Error(err)
	}
	// Without the reset of the origin, the edge says that it sends no more.
	s = open(t, c, streamed)
	id = p.request()
	p.respond(id, "no")
	wantBody(t, s, "no")
	s.Close()
	for {
		if f := p.next(http2.FrameRSTStream).(*http2.RSTStreamFrame); f.StreamID == id {
			if f.ErrCode != http2.ErrCodeNo {
				t.Error(f.ErrCode)
			}
			return
		}
	}
}
