package h2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestStreamsShareAConnection(t *testing.T) {
	c, p := begin(t)
	first, second := open(t, c), open(t, c)
	one, two := p.request(), p.request()
	p.headers(one, false, ":status", "200")
	p.respond(two, "second")
	wantBody(t, second, "second")
	_ = p.WriteDataPadded(one, false, []byte("fi"), make([]byte, 10))
	_ = p.WriteData(one, false, nil)
	_ = p.WriteData(one, true, []byte("rst"))
	wantBody(t, first, "first")
	first.Close()
	second.Close()
	if c.InFlight() != 0 || c.Err() != nil {
		t.Error(c.InFlight(), c.Err())
	}
}

func TestInformationalResponsesAndTrailers(t *testing.T) {
	c, p := begin(t)
	s := open(t, c)
	id := p.request()
	p.headers(id, false, ":status", "100")
	p.headers(id, false, ":status", "103", "link", "x")
	// Headers may come in pieces.
	b := block(":status", "200", "content-type", "application/grpc")
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:3], PadLength: 5, Priority: http2.PriorityParam{Weight: 1}})
	_ = p.WriteContinuation(id, false, nil)
	_ = p.WriteContinuation(id, true, b[3:])
	_ = p.WriteData(id, false, []byte("body"))
	p.headers(id, true, "grpc-status", "0", "grpc-message", "")
	h, err := s.Header(t.Context(), long)
	if err != nil || h.Status != 103 || h.Fields[0] != (Field{"link", "x"}) {
		t.Fatal(h, err)
	}
	wantBody(t, s, "body")
	if got := s.Trailers(); len(got) != 2 || got[0] != (Field{"grpc-status", "0"}) {
		t.Error(got)
	}
	only := open(t, c)
	p.headers(p.request(), true, ":status", "200", "grpc-status", "5")
	if h, err := only.Header(t.Context(), long); err != nil || !only.Ended() || h.Fields[0].Value != "5" {
		t.Error(h, err)
	}
	head := open(t, c, func(r *Request) { r.HeadOnly = true })
	p.headers(p.request(), true, ":status", "200", "content-length", "7")
	if status, body, err := readAll(t, head); status != http.StatusOK || body != "" || err != nil {
		t.Error(status, body, err)
	}
}

// An origin that goes away names the last stream that it processed: later ones were not.
func TestGoAway(t *testing.T) {
	c, p := begin(t)
	first, second := open(t, c), open(t, c)
	one := p.request()
	p.request()
	if !c.Reserve() {
		t.Fatal("no room")
	}
	_ = p.WriteGoAway(one, http2.ErrCodeNo, nil)
	if _, _, err := readAll(t, second); err != ErrUnprocessed {
		t.Error(err)
	}
	if c.Err() == nil || c.Reserve() {
		t.Error("the connection takes requests")
	}
	if _, _, err := c.Open(Request{}); err != ErrUnprocessed {
		t.Error(err)
	}
	p.respond(one, "first")
	wantBody(t, first, "first")
	p.next(http2.FrameGoAway)
	if _, err := p.ReadFrame(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

func TestResetsOfTheOrigin(t *testing.T) {
	c, p := begin(t)
	for code, want := range map[http2.ErrCode]error{http2.ErrCodeRefusedStream: ErrUnprocessed, http2.ErrCodeInternal: &ResetError{2}, http2.ErrCodeNo: &ResetError{0}} {
		s := open(t, c)
		_ = p.WriteRSTStream(p.request(), code)
		if _, _, err := readAll(t, s); err == nil || err.Error() != want.Error() {
			t.Errorf("%v: %v, want %v", code, err, want)
		}
	}
	// What came before a reset is there.
	s := open(t, c)
	id := p.request()
	p.headers(id, false, ":status", "200")
	_ = p.WriteData(id, false, []byte("some"))
	_ = p.WriteRSTStream(id, http2.ErrCodeRefusedStream)
	if status, body, err := readAll(t, s); status != 200 || body != "some" || err == ErrUnprocessed || !OfStream(err) {
		t.Error(status, body, err)
	}
}

// A request that nobody waits for is reset. It counts as open until the origin has read that, as its PING says.
func TestCanceledRequestsCountUntilTheOriginKnows(t *testing.T) {
	c, p := begin(t, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	s := open(t, c)
	id := p.request()
	if c.Reserve() {
		t.Fatal("more streams than the origin takes")
	}
	s.Close()
	if reset := p.next(http2.FrameRSTStream).(*http2.RSTStreamFrame); reset.StreamID != id || reset.ErrCode != http2.ErrCodeCancel {
		t.Error(reset)
	}
	if c.InFlight() != 0 || c.Reserve() {
		t.Error("the origin has a place before it knows")
	}
	ping := p.next(http2.FramePing).(*http2.PingFrame)
	// What was under way is nobody's.
	p.respond(id, "late")
	_ = p.WritePing(true, ping.Data)
	until(t, "there is a place", c.Reserve)
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

// Servers of gRPC end a connection with pings and nothing else. A silent origin gets one until it sends something.
func TestOriginsThatSendNothingGetOnePing(t *testing.T) {
	c, p := beginWith(t, 5*time.Millisecond)
	s := open(t, c)
	id := p.request()
	pings := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.PingFrame:
				pings++
				_ = p.WritePing(true, f.Data)
			case *http2.RSTStreamFrame:
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Header(ctx, long); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	for range 10 {
		other := open(t, c)
		other.Close()
	}
	s.Close()
	<-done
	if pings != 1 || c.Err() != nil {
		t.Errorf("%d pings for stream %d, %v", pings, id, c.Err())
	}
}

// An origin that is gone without a word is found out, and one that takes nothing.
func TestStuckConnectionsEnd(t *testing.T) {
	c, p := beginWith(t, 5*time.Millisecond)
	s := open(t, c)
	p.request()
	if _, _, err := readAll(t, s); err != errStuck {
		t.Error(err)
	}
	c, _ = beginWith(t, 5*time.Millisecond, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
	s = open(t, c, streamed)
	c.mu.Lock()
	c.send = maxWindow
	c.mu.Unlock()
	var err error
	for block := make([]byte, 1<<20); err == nil; {
		err = s.Write(block, false, long)
	}
	if err != errStuck {
		t.Error(err)
	}
}

// Frames that bring nothing end the connection where there are too many.
func TestFloodsEndTheConnection(t *testing.T) {
	for name, frame := range map[string]func(p *peer, id uint32){
		"PING":                 func(p *peer, _ uint32) { _ = p.WritePing(false, [8]byte{}) },
		"acknowledgements":     func(p *peer, _ uint32) { _ = p.WriteSettingsAck() },
		"SETTINGS":             func(p *peer, _ uint32) { _ = p.WriteSettings() },
		"empty DATA":           func(p *peer, id uint32) { _ = p.WriteData(id, false, nil) },
		"WINDOW_UPDATE":        func(p *peer, id uint32) { _ = p.WriteWindowUpdate(id, 1) },
		"PRIORITY":             func(p *peer, id uint32) { _ = p.WritePriority(id, http2.PriorityParam{}) },
		"GOAWAY":               func(p *peer, id uint32) { _ = p.WriteGoAway(id, http2.ErrCodeNo, nil) },
		"unknown frames":       func(p *peer, _ uint32) { _ = p.WriteRawFrame(0x77, 0, 0, nil) },
		"resets of the dead":   func(p *peer, _ uint32) { _ = p.WriteRSTStream(1, http2.ErrCodeCancel) },
		"DATA for the dead":    func(p *peer, _ uint32) { _ = p.WriteData(1, false, []byte("x")) },
		"HEADERS for the dead": func(p *peer, _ uint32) { p.headers(1, false, ":status", "200") },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := begin(t)
			dead := open(t, c)
			p.request()
			s := open(t, c)
			id := p.request()
			p.headers(id, false, ":status", "200")
			dead.Close()
			go func() {
				for {
					if _, err := p.ReadFrame(); err != nil {
						return
					}
				}
			}()
			// A few are nothing.
			for range 100 {
				frame(p, id)
			}
			_ = p.WriteData(id, false, []byte("x"))
			if h, err := s.Header(t.Context(), long); err != nil || h.Status != 200 {
				t.Fatal(h, err)
			}
			if body, _, err := s.Read(t.Context(), long); err != nil || string(body) != "x" {
				t.Fatal(string(body), err)
			}
			go func() {
				for range 3 * maxWaste {
					frame(p, id)
				}
			}()
			var broken *connError
			if _, _, err := s.Read(t.Context(), long); !errors.As(err, &broken) || broken.code != codeEnhanceYourCalm {
				t.Error(err)
			}
		})
	}
}

func TestSilenceAndClientsThatLeave(t *testing.T) {
	c, p := begin(t)
	s := open(t, c)
	id := p.request()
	if _, err := s.Header(t.Context(), time.Millisecond); err != ErrSilent {
		t.Error(err)
	}
	if _, err := s.Header(t.Context(), 50*time.Millisecond); err != ErrSilent {
		t.Error(err)
	}
	p.headers(id, false, ":status", "200")
	if _, err := s.Header(t.Context(), long); err != nil {
		t.Error(err)
	}
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(cause)
	if _, _, err := s.Read(ctx, long); err != cause {
		t.Error(err)
	}
	// While the request is sent, the origin may be silent.
	up := open(t, c, streamed)
	id = p.request()
	got := make(chan error)
	go func() {
		_, err := up.Header(t.Context(), 10*time.Millisecond)
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
	_ = up.End(nil)
	if err := <-got; err != ErrSilent {
		t.Error(err)
	}
}

func TestPeersOfAnotherProtocol(t *testing.T) {
	for name, first := range map[string]string{
		"HTTP/1.1": "HTTP/1.1 400 Bad Request\r\n\r\n", "PING": "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + strings.Repeat("x", 8),
		"an acknowledgement": "\x00\x00\x00\x04\x01\x00\x00\x00\x00", "nothing": "",
	} {
		near, far := pipe(t)
		c := New(near)
		_, _ = io.WriteString(far, first)
		if first == "" {
			far.Close()
		}
		<-c.Ready()
		if err := c.Err(); err == nil || first != "" && err != ErrNotHTTP2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
