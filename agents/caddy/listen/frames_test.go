package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/http2"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Whoever floods hears why its connection ends, and the node counts it by what it was flooded with.
func TestFloodsOfHTTP2EndInGoAway(t *testing.T) {
	for name, send := range map[string]func(c *attacker, turn uint32) error{
		"settings": func(c *attacker, _ uint32) error { return c.WriteSettings() },
		"pings":    func(c *attacker, _ uint32) error { return c.WritePing(false, [8]byte{}) },
		"resets": func(c *attacker, turn uint32) error {
			if err := c.ask(2*turn + 1); err != nil {
				return err
			}
			return c.WriteRSTStream(2*turn+1, http2.ErrCodeCancel)
		},
		"priorities": func(c *attacker, turn uint32) error {
			return c.WritePriority(2*turn+1, http2.PriorityParam{Weight: 1})
		},
		"window_updates": func(c *attacker, _ uint32) error { return c.WriteWindowUpdate(0, 1) },
		"unknown_frames": func(c *attacker, _ uint32) error { return c.WriteRawFrame(0xbe, 0, 0, nil) },
		"empty_frames": func(c *attacker, turn uint32) error {
			if turn == 0 {
				return c.upload(1)
			}
			return c.WriteData(1, false, nil)
		},
		"continuations": func(c *attacker, turn uint32) error {
			if turn == 0 {
				return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			}
			return c.WriteContinuation(1, false, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := attack(t)
			c := a.dial(t)
			code := make(chan http2.ErrCode, 1)
			go func() { code <- c.goAway() }()
			if err := c.SetWriteDeadline(time.Now().Add(60 * time.Second)); err != nil {
				t.Fatal(err)
			}
			for turn := uint32(0); send(c, turn) == nil; turn++ {
			}
			if got := <-code; got != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("the connection ended with %v", got)
			}
			if errors := a.registry.Counters().HTTP2Errors; errors["conn_ENHANCE_YOUR_CALM_"+name] != 1 {
				t.Errorf("%v", errors)
			}
			a.serves(t)
		})
	}
}

// goAway reads until the connection ends, and tells what with.
func (c *attacker) goAway() http2.ErrCode {
	code := http2.ErrCodeNo
	for {
		frame, err := c.ReadFrame()
		if goAway, is := frame.(*http2.GoAwayFrame); is {
			code = goAway.ErrCode
		}
		if err != nil {
			return code
		}
	}
}

// What clients send in an hour of use is no flood: it comes with time, or with what they get.
func TestWhatClientsDoIsNoFlood(t *testing.T) {
	c := &framedConn{errors: &tally{}}
	now := time.Now()
	for second := range 3600 {
		now = now.Add(time.Second)
		c.sent.Add(64 << 10)
		for _, kind := range []http2.FrameType{http2.FramePing, http2.FrameRSTStream, http2.FrameWindowUpdate, http2.FramePriority} {
			for range 80 {
				c.head = [frameHeadBytes]byte{3: byte(kind)}
				if err := c.frame(now); err != nil {
					t.Fatalf("%v in second %d: %v", kind, second, err)
				}
			}
		}
	}
	// As fast as a client of gRPC measures how much it can take.
	for range 100_000 {
		c.sent.Add(1 << 10)
		c.head = [frameHeadBytes]byte{3: byte(http2.FramePing)}
		if err := c.frame(now); err != nil {
			t.Fatal(err)
		}
	}
}

// Frames are found however they are cut.
func TestFramesAreFoundInPieces(t *testing.T) {
	var sent bytes.Buffer
	framer := http2.NewFramer(&sent, nil)
	for range 50 {
		if err := errors.Join(
			framer.WriteData(1, false, []byte("some bytes")), framer.WritePing(false, [8]byte{1: 4, 4: 8}), framer.WriteData(1, true, nil),
		); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{1, 2, 7, 9, 10, 64, sent.Len()} {
		c := &framedConn{errors: &tally{}}
		now := time.Now()
		for rest := sent.Bytes(); len(rest) > 0; {
			n := min(size, len(rest))
			if err := c.follow(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		passed := time.Since(now).Seconds()
		if used := c.spent[pingFrames].used; used > 50 || used < 50-passed*allowances[pingFrames].second-1 || c.payload != 0 || c.headed != 0 {
			t.Errorf("in pieces of %d: %v pings, %d bytes to come, %d of a head", size, used, c.payload, c.headed)
		}
	}
}

// What a client takes is known from its frames, however they are cut, and used up by responses.
func TestWhatAClientTakes(t *testing.T) {
	var sent bytes.Buffer
	framer := http2.NewFramer(&sent, nil)
	if err := errors.Join(framer.WriteWindowUpdate(0, 70_000), framer.WriteWindowUpdate(3, 1<<20), framer.WriteWindowUpdate(0, 1)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 5, sent.Len()} {
		c := &framedConn{errors: &tally{}, under: new(Conn)}
		for rest := sent.Bytes(); len(rest) > 0; {
			n := min(size, len(rest))
			if err := c.follow(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		flow := &c.under.flow
		if left := flow.left.Load(); left != 70_001 {
			t.Errorf("in pieces of %d: %d", size, left)
		}
		if flow.spend(1000) || flow.spend(60_000) || !flow.spend(firstWindow+1) {
			t.Error("within the windows nothing waits, beyond that of a stream it may")
		}
		if !flow.spend(70_001 - 61_000 - flowMargin) {
			t.Error("the window of the connection is nearly used up")
		}
		flow.left.Add(1 << 20)
		c.streamsBeginWith([]byte{0, 4, 0, 0, 0, 10, 0, 3, 0, 0, 0, 1})
		if flow.spend(10) || !flow.spend(11) {
			t.Error("streams begin with a window of 10 bytes")
		}
		flow.writing.Store(1)
		if !flow.spend(0) {
			t.Error("a write that lasts does not count")
		}
	}
}

// Settings that come twice apply in their order: the last one stays what it is, and no two are the same afterwards.
func TestTheLastOfTwoSettingsCounts(t *testing.T) {
	a := attack(t)
	c := a.dial(t)
	if err := c.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20_000},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1},
	); err != nil {
		t.Fatal(err)
	}
	// One answer may acknowledge several frames of settings; that to a ping says that the server goes on behind them.
	if err := errors.Join(c.WritePing(false, [8]byte{1}), c.SetReadDeadline(time.Now().Add(60*time.Second))); err != nil {
		t.Fatal(err)
	}
	for answered := false; !answered; {
		frame, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		ping, is := frame.(*http2.PingFrame)
		answered = is && ping.IsAck()
	}
	payload := []byte{}
	for _, id := range []uint16{4, 0xf001, 4, 5, 4} {
		payload = binary.BigEndian.AppendUint16(payload, id)
		payload = binary.BigEndian.AppendUint32(payload, uint32(len(payload)))
	}
	lastCounts(payload)
	seen := map[uint16]bool{}
	for at := 0; at < len(payload); at += settingBytes {
		seen[binary.BigEndian.Uint16(payload[at:])] = true
	}
	if len(seen) != 5 || binary.BigEndian.Uint16(payload[24:]) != 4 || binary.BigEndian.Uint32(payload[26:]) != 26 {
		t.Errorf("% x", payload)
	}
}

// A client that speaks something else over a connection of HTTP/2 is closed.
func TestOnlyHTTP2IsSpokenOverHTTP2(t *testing.T) {
	a := attack(t)
	c := a.connect(t)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || len(answer) > 0 {
		t.Errorf("%q %v", answer, err)
	}
	if errors := a.registry.Counters().HTTP2Errors; errors["conn_PROTOCOL_ERROR_preface"] != 1 {
		t.Errorf("%v", errors)
	}
	a.serves(t)
}

// Frames are looked at because servers of HTTP/2 take connections that are no *tls.Conn under a key of TLSNextProto that
// net/http keeps to itself. It may go with any version of Go or of golang.org/x/net.
func TestServersOfHTTP2TakeConnectionsOfAnyKind(t *testing.T) {
	bare := &http.Server{}
	if err := http2.ConfigureServer(bare, nil); err != nil {
		t.Fatal(err)
	}
	own := httptest.NewUnstartedServer(http.NotFoundHandler())
	own.EnableHTTP2 = true
	own.StartTLS()
	defer own.Close()
	if response, err := own.Client().Get(own.URL); err != nil || response.ProtoMajor != 2 {
		t.Fatal(response, err)
	}
	w := New(newCore(t, &configv1.ClientIp{}), NewRegistry())
	for name, server := range map[string]*http.Server{"golang.org/x/net/http2, which Caddy takes": bare, "net/http": own.Config} {
		if server.TLSNextProto[protoAny] == nil || !w.watchFrames(server) {
			t.Errorf("%s under %s serves HTTP/2 no more under TLSNextProto[%q], so listen/frames.go sees no frames and no flood of HTTP/2 "+
				"ends in GOAWAY: find how this version takes a net.Conn, and change watchFrames before it is used", name, runtime.Version(), protoAny)
		}
	}
	delete(bare.TLSNextProto, protoAny)
	if w.watchFrames(bare) {
		t.Error("a server that takes none is said to do")
	}
	if !w.watchFrames(&http.Server{}) {
		t.Error("a server without HTTP/2 lacks something")
	}
}

// An edge whose HTTP/2 would go without limits on frames does not start.
func TestTheStartFailsWithoutLimitsOnFrames(t *testing.T) {
	if err := checkFrames(http2.ConfigureServer); err != nil {
		t.Error(err)
	}
	for _, lost := range []string{protoHTTP2, protoAny} {
		if err := checkFrames(func(server *http.Server, config *http2.Server) error {
			err := http2.ConfigureServer(server, config)
			delete(server.TLSNextProto, lost)
			return err
		}); err != errNoFrames {
			t.Errorf("without %s: %v", lost, err)
		}
	}
}

// A server that lost its limits on frames while it runs speaks no HTTP/2 any more.
func TestNoHTTP2WithoutLimitsOnFrames(t *testing.T) {
	a := attackBare(t, func(server *http.Server) { delete(server.TLSNextProto, protoAny) })
	c := a.connect(t)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err == nil && len(answer) > 0 {
		t.Errorf("%q", answer)
	}
}

// The limits on frames cost time with each request, and end a flood: the README has the figures.
func BenchmarkFrameLimits(b *testing.B) {
	var request, pings bytes.Buffer
	_ = http2.NewFramer(&request, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: make([]byte, 40), EndStream: true, EndHeaders: true})
	for range 1000 {
		_ = http2.NewFramer(&pings, nil).WritePing(false, [8]byte{})
	}
	b.Run("request", func(b *testing.B) {
		c := &framedConn{errors: &tally{}}
		for range b.N {
			_ = c.follow(request.Bytes())
		}
	})
	for name, limited := range map[string]bool{"ping of a flood/with": true, "ping of a flood/without": false} {
		b.Run(name, func(b *testing.B) {
			client, conn := net.Pipe()
			defer client.Close()
			if limited {
				conn = &framedConn{Conn: conn, errors: &tally{}}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				new(http2.Server).ServeConn(conn, &http2.ServeConnOpts{Handler: http.NotFoundHandler()})
			}()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			_, _ = io.WriteString(client, http2.ClientPreface)
			_ = http2.NewFramer(client, nil).WriteSettings()
			for sent := 0; sent < b.N; sent += 1000 {
				if _, err := client.Write(pings.Bytes()); err != nil {
					break
				}
			}
			_ = client.Close()
			<-ended
		})
	}
}
