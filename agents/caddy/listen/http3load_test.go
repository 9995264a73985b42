package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// Kinds of frames and streams of HTTP/3.
const (
	h3Data, h3Headers, h3Settings, h3Goaway, h3Reserved = 0, 1, 4, 7, 2
	h3Control, h3Push, h3Encoder                        = 0, 1, 2
)

func h3Frame(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

func h3Head(t *testing.T, path string, more ...qpack.HeaderField) []byte {
	t.Helper()
	return h3HeadOf(t, "GET", path, more...)
}

func h3HeadOf(t *testing.T, method, path string, more ...qpack.HeaderField) []byte {
	t.Helper()
	var head bytes.Buffer
	encoder := qpack.NewEncoder(&head)
	for _, f := range append([]qpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a.com"}, {Name: ":path", Value: path},
	}, more...) {
		if err := encoder.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	return head.Bytes()
}

// one opens a stream of its own for a kind and writes behind it; it may be ended by then.
func one(conn *quic.Conn, kind uint64, content []byte) *quic.SendStream {
	stream, err := conn.OpenUniStream()
	if err == nil {
		_, _ = stream.Write(append(quicvarint.Append(nil, kind), content...))
	}
	return stream
}

// What clients do against HTTP/3 ends their connection with the code for it, and the node counts it. Others are served.
func TestBreachesOfHTTP3EndTheConnection(t *testing.T) {
	settings := h3Frame(h3Settings, nil)
	request := func(conn *quic.Conn, content []byte) {
		if stream, err := conn.OpenStream(); err == nil {
			_, _ = stream.Write(content)
		}
	}
	for name, breach := range map[string]struct {
		code http3.ErrCode
		do   func(conn *quic.Conn)
	}{
		"settings twice": {http3.ErrCodeFrameUnexpected, func(conn *quic.Conn) { one(conn, h3Control, append(settings, settings...)) }},
		"settings without an end": {http3.ErrCodeFrameError, func(conn *quic.Conn) {
			one(conn, h3Control, append(quicvarint.Append(nil, h3Settings), quicvarint.Append(nil, 1<<20)...))
		}},
		"a setting twice": {http3.ErrCodeFrameError, func(conn *quic.Conn) { one(conn, h3Control, h3Frame(h3Settings, []byte{6, 1, 6, 1})) }},
		"no settings":     {http3.ErrCodeMissingSettings, func(conn *quic.Conn) { one(conn, h3Control, h3Frame(h3Goaway, []byte{0})) }},
		"a control stream twice": {http3.ErrCodeStreamCreationError, func(conn *quic.Conn) {
			one(conn, h3Control, settings)
			one(conn, h3Control, settings)
		}},
		"a control stream that ends": {http3.ErrCodeClosedCriticalStream, func(conn *quic.Conn) { _ = one(conn, h3Control, settings).Close() }},
		"a body on the control stream": {http3.ErrCodeFrameUnexpected, func(conn *quic.Conn) {
			one(conn, h3Control, append(settings, h3Frame(h3Data, []byte("x"))...))
		}},
		"an encoder stream twice": {http3.ErrCodeStreamCreationError, func(conn *quic.Conn) {
			one(conn, h3Encoder, nil)
			one(conn, h3Encoder, nil)
		}},
		"a pushed stream":         {http3.ErrCodeStreamCreationError, func(conn *quic.Conn) { one(conn, h3Push, []byte{0}) }},
		"a body without a head":   {http3.ErrCodeFrameUnexpected, func(conn *quic.Conn) { request(conn, h3Frame(h3Data, []byte("x"))) }},
		"a frame that HTTP/2 has": {http3.ErrCodeFrameUnexpected, func(conn *quic.Conn) { request(conn, h3Frame(h3Reserved, nil)) }},
	} {
		t.Run(name, func(t *testing.T) {
			e := serveQUIC(t, Limits{}, func(http.ResponseWriter, *http.Request) {})
			conn := dialQUIC(t, e, []string{http3.NextProtoH3})
			breach.do(conn)
			e.endsWith(t, conn, breach.code)
		})
	}
}

// endsWith waits for the end of a connection by a code, which counts, and asks on another one.
func (e *quicEdge) endsWith(t *testing.T, conn *quic.Conn, code http3.ErrCode) {
	t.Helper()
	select {
	case <-conn.Context().Done():
	case <-time.After(60 * time.Second):
		t.Fatal("the connection goes on")
	}
	var ended *quic.ApplicationError
	if cause := context.Cause(conn.Context()); !errors.As(cause, &ended) || !ended.Remote || http3.ErrCode(ended.ErrorCode) != code {
		t.Errorf("it ended with %v", cause)
	}
	until(t, "it counts", func() bool {
		counted := e.registry.Counters().HTTP3Errors
		return len(counted) == 1 && counted["conn_"+code.String()] == 1
	})
	visitor, _ := e.visitor(t, "a.com")
	if response, err := visitor.Get(e.url()); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("another client: %v %v", response, err)
	}
}

// Requests that are taken back at once: no more of them are answered than streams are allowed, whether their handlers hear of
// it or not, and whoever goes on is sent away.
func TestResetsOfHTTP3AreBounded(t *testing.T) {
	var running, most, deaf atomic.Int64
	release := make(chan struct{})
	e := serveQUIC(t, Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		if r.URL.Path == "/" {
			return
		}
		now := running.Add(1)
		defer running.Add(-1)
		for high := most.Load(); now > high && !most.CompareAndSwap(high, now); high = most.Load() {
		}
		// Some notice nothing for as long as the flood lasts.
		if deaf.Add(1) <= maxQUICRequests/2 {
			<-release
			return
		}
		<-r.Context().Done()
	})
	conn := dialQUIC(t, e, []string{http3.NextProtoH3})
	one(conn, h3Control, h3Frame(h3Settings, nil))
	head := h3Frame(h3Headers, h3Head(t, "/held"))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for asked := 0; ; asked++ {
		stream, err := conn.OpenStreamSync(ctx)
		if err != nil {
			if asked < int(allowances[resetFrames].burst) {
				t.Errorf("after %d requests: %v", asked, err)
			}
			break
		}
		_, _ = stream.Write(head)
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		_ = stream.Close()
	}
	if n := most.Load(); n > maxQUICRequests {
		t.Errorf("%d requests were answered at a time", n)
	}
	close(release)
	e.endsWith(t, conn, http3.ErrCodeExcessiveLoad)
	until(t, "nothing runs", func() bool { return running.Load() == 0 })
}

// Heads above what a server takes get a 431 before anything of theirs is kept, and so do those that become too large when
// they are unpacked. It is the edge's where the head says how long it is; the last one is quic-go's own.
func TestHeadsOfHTTP3AreBounded(t *testing.T) {
	asked := make(chan struct{}, 10)
	e := serveQUIC(t, Limits{}, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	field := qpack.HeaderField{Name: "x", Value: strings.Repeat("v", 8000)}
	for name, sent := range map[string][]byte{
		"a head that says it is long": append(quicvarint.Append(nil, h3Headers), quicvarint.Append(nil, 1<<30)...),
		"a head of many fields":       h3Frame(h3Headers, h3Head(t, "/", slices.Repeat([]qpack.HeaderField{field}, 16)...)),
		// One byte each, for a field of the table that all know: 12,000 of them are 500 KiB.
		"a head that is unpacked": h3Frame(h3Headers, append(h3Head(t, "/"), bytes.Repeat([]byte{0xc0 | 29}, 12_000)...)),
	} {
		conn := dialQUIC(t, e, []string{http3.NextProtoH3})
		one(conn, h3Control, h3Frame(h3Settings, nil))
		stream, err := conn.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SetDeadline(time.Now().Add(60 * time.Second))
		// What comes after the refusal is not taken.
		_, _ = stream.Write(sent)
		header := h3Header(t, stream)
		if own := name != "a head that is unpacked"; header[":status"] != "431" || own != (header["x-svc-error"] == "header-too-large") || own != (len(header["x-request-id"]) == 32) {
			t.Errorf("%s: %q", name, header)
		}
	}
	if len(asked) > 0 {
		t.Error("a handler was asked")
	}
	until(t, "each counts", func() bool { return e.registry.Counters().HTTP3Errors[largeHead] == 3 })
}

func h3Status(t *testing.T, stream io.Reader) string {
	t.Helper()
	return h3Header(t, stream)[":status"]
}

func h3Header(t *testing.T, stream io.Reader) map[string]string {
	t.Helper()
	in := quicvarint.NewReader(stream)
	kind, err := quicvarint.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	length, err := quicvarint.Read(in)
	if err != nil || kind != h3Headers || length > maxHeaderBlock {
		t.Fatalf("the answer begins with frame %d of %d bytes: %v", kind, length, err)
	}
	head := make([]byte, length)
	if _, err := io.ReadFull(in, head); err != nil {
		t.Fatal(err)
	}
	header := map[string]string{}
	for next := qpack.NewDecoder().Decode(head); ; {
		f, err := next()
		if err == io.EOF {
			return header
		}
		if err != nil {
			t.Fatal(err)
		}
		header[f.Name] = f.Value
	}
}

// A client has as many streams as the server allows, and gets more as they end.
func TestStreamsOfHTTP3AreBounded(t *testing.T) {
	release := make(chan struct{})
	e := serveQUIC(t, Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		<-release
	})
	conn := dialQUIC(t, e, []string{http3.NextProtoH3})
	one(conn, h3Control, h3Frame(h3Settings, nil))
	for range maxQUICRequests {
		stream, err := conn.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = stream.Write(h3Frame(h3Headers, h3Head(t, "/")))
		_ = stream.Close()
		go func() { _, _ = io.Copy(io.Discard, stream) }()
	}
	var limited *quic.StreamLimitReachedError
	if _, err := conn.OpenStream(); !errors.As(err, &limited) {
		t.Errorf("one more stream: %v", err)
	}
	close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := conn.OpenStreamSync(ctx); err != nil {
		t.Errorf("after answers: %v", err)
	}
	// One for control, and seven that nobody knows.
	for range maxQUICStreams {
		one(conn, 0x21, nil)
	}
	if c := e.registry.Counters(); c.Open != 1 || len(c.HTTP3Errors) != 0 {
		t.Errorf("%+v", c)
	}
}

// Who leaves now and then is not sent away.
func TestRequestsThatAreTakenBackAreNoFlood(t *testing.T) {
	q, now := new(quicConn), time.Now()
	for range 3600 {
		now = now.Add(time.Second)
		for range 100 {
			if !q.resets.within(&allowances[resetFrames], now, 0) {
				t.Fatal("too many")
			}
		}
	}
}
