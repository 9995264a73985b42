package h2

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An origin that breaks the rules of a connection loses it, and is told why.
func TestConnectionsEndWhereTheirRulesAreBroken(t *testing.T) {
	raw := func(kind http2.FrameType, flags http2.Flags, id uint32, payload []byte) func(*peer, uint32) {
		return func(p *peer, _ uint32) { _ = p.WriteRawFrame(kind, flags, id, payload) }
	}
	huge := strings.Repeat("x", 60<<10)
	for name, c := range map[string]struct {
		code    http2.ErrCode
		violate func(p *peer, id uint32)
	}{
		"DATA without a stream":             {codeProtocol, raw(http2.FrameData, 0, 0, nil)},
		"DATA of a stream to come":          {codeProtocol, raw(http2.FrameData, 0, 99, nil)},
		"HEADERS of a stream of the origin": {codeProtocol, raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 2, nil)},
		"RST_STREAM of a stream to come":    {codeProtocol, raw(http2.FrameRSTStream, 0, 99, make([]byte, 4))},
		"RST_STREAM of another size":        {codeFrameSize, raw(http2.FrameRSTStream, 0, 1, make([]byte, 3))},
		"a push":                            {codeProtocol, raw(http2.FramePushPromise, 0, 1, make([]byte, 4))},
		"pushes turned on":                  {codeProtocol, func(p *peer, _ uint32) { _ = p.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 1}) }},
		"a window that is too large": {codeFlowControl, func(p *peer, _ uint32) {
			_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}},
		"frames that are too small":           {codeProtocol, func(p *peer, _ uint32) { _ = p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 100}) }},
		"SETTINGS of another size":            {codeFrameSize, raw(http2.FrameSettings, 0, 0, make([]byte, 5))},
		"an acknowledgement with settings":    {codeFrameSize, raw(http2.FrameSettings, http2.FlagSettingsAck, 0, make([]byte, 6))},
		"SETTINGS of a stream":                {codeProtocol, raw(http2.FrameSettings, 0, 1, nil)},
		"PING of another size":                {codeFrameSize, raw(http2.FramePing, 0, 0, make([]byte, 7))},
		"PING of a stream":                    {codeProtocol, raw(http2.FramePing, 0, 1, make([]byte, 8))},
		"GOAWAY of a stream":                  {codeProtocol, raw(http2.FrameGoAway, 0, 1, make([]byte, 8))},
		"GOAWAY of another size":              {codeFrameSize, raw(http2.FrameGoAway, 0, 0, make([]byte, 7))},
		"PRIORITY without a stream":           {codeProtocol, raw(http2.FramePriority, 0, 0, make([]byte, 5))},
		"PRIORITY of another size":            {codeFrameSize, raw(http2.FramePriority, 0, 1, make([]byte, 4))},
		"WINDOW_UPDATE of nothing":            {codeProtocol, raw(http2.FrameWindowUpdate, 0, 0, make([]byte, 4))},
		"WINDOW_UPDATE of another size":       {codeFrameSize, raw(http2.FrameWindowUpdate, 0, 0, make([]byte, 3))},
		"a window beyond the largest":         {codeFlowControl, raw(http2.FrameWindowUpdate, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})},
		"more padding than bytes":             {codeProtocol, raw(http2.FrameData, http2.FlagDataPadded, 1, []byte{9, 0})},
		"HEADERS that are too short":          {codeFrameSize, raw(http2.FrameHeaders, http2.FlagHeadersPriority|http2.FlagHeadersEndHeaders, 1, make([]byte, 3))},
		"CONTINUATION of nothing":             {codeProtocol, raw(http2.FrameContinuation, 0, 1, nil)},
		"a frame that is too large":           {codeFrameSize, raw(http2.FrameData, 0, 1, make([]byte, minFrame+1))},
		"a block that cannot be decoded":      {codeCompression, raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})},
		"a table that is larger than allowed": {codeCompression, raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0x3f, 0xff, 0xff, 0x07})},
		"a block that is interrupted": {codeProtocol, func(p *peer, id uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, 0, id, block(":status", "200"))
			_ = p.WritePing(false, [8]byte{})
		}},
		"a block without end": {codeEnhanceYourCalm, func(p *peer, id uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, 0, id, block(":status", "200"))
			for range maxContinuations + 1 {
				_ = p.WriteRawFrame(http2.FrameContinuation, 0, id, nil)
			}
		}},
		"a block that is too large": {codeEnhanceYourCalm, func(p *peer, id uint32) {
			b := AppendField(AppendField(block(":status", "200"), []byte("x"), []byte(huge)), []byte("x"), []byte(huge))
			kind := http2.FrameHeaders
			for ; len(b) > 0; kind = http2.FrameContinuation {
				n := min(len(b), minFrame)
				_ = p.WriteRawFrame(kind, 0, id, b[:n])
				b = b[n:]
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, p := begin(t)
			s := open(t, conn)
			c.violate(p, p.request())
			if _, _, err := readAll(t, s); err == nil || OfStream(err) {
				t.Errorf("the stream ended with %v", err)
			}
			if code := p.next(http2.FrameGoAway).(*http2.GoAwayFrame).ErrCode; code != c.code {
				t.Errorf("code %v, want %v", code, c.code)
			}
			if conn.Err() == nil || conn.Reserve() {
				t.Error("the connection takes requests")
			}
		})
	}
}

// A response that breaks the rules ends its stream, and no other.
func TestStreamsEndWhereTheirRulesAreBroken(t *testing.T) {
	ok := []string{":status", "200"}
	headers := func(end bool, fields ...string) func(*peer, uint32) {
		return func(p *peer, id uint32) { p.headers(id, end, fields...) }
	}
	for name, c := range map[string]struct {
		code    http2.ErrCode
		want    error
		violate func(p *peer, id uint32)
	}{
		"no status":                  {codeProtocol, ErrMalformed, headers(true, "a", "b")},
		"a status of four digits":    {codeProtocol, ErrMalformed, headers(true, ":status", "2000")},
		"a status of letters":        {codeProtocol, ErrMalformed, headers(true, ":status", "2x0")},
		"two":                        {codeProtocol, ErrMalformed, headers(true, ":status", "200", ":status", "200")},
		"a status after fields":      {codeProtocol, ErrMalformed, headers(true, "a", "b", ":status", "200")},
		"a pseudo field of requests": {codeProtocol, ErrMalformed, headers(true, ":status", "200", ":path", "/")},
		"101":                        {codeProtocol, ErrMalformed, headers(false, ":status", "101")},
		"an informational end":       {codeProtocol, ErrMalformed, headers(true, ":status", "103")},
		"a name in upper case":       {codeProtocol, ErrMalformed, headers(true, append(ok, "Name", "x")...)},
		"a name with a blank":        {codeProtocol, ErrMalformed, headers(true, append(ok, "a b", "x")...)},
		"an empty name":              {codeProtocol, ErrMalformed, headers(true, append(ok, "", "x")...)},
		"a line break in a value":    {codeProtocol, ErrMalformed, headers(true, append(ok, "a", "x\r\nb: c")...)},
		"two lengths":                {codeProtocol, ErrMalformed, headers(false, append(ok, "content-length", "1", "content-length", "2")...)},
		"a length that is none":      {codeProtocol, ErrMalformed, headers(false, append(ok, "content-length", "+1")...)},
		"an end before the length":   {codeProtocol, ErrMalformed, headers(true, append(ok, "content-length", "1")...)},
		"headers that are too large": {codeCancel, ErrTooLarge, func(p *peer, id uint32) {
			b := block(ok...)
			for range maxFields + 1 {
				b = AppendField(b, []byte("a"), []byte("b"))
			}
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, b)
		}},
		// A few bytes refer to a large entry of the table, again and again.
		"headers that are too large when decoded": {codeCancel, ErrTooLarge, func(p *peer, id uint32) {
			var b bytes.Buffer
			e := hpack.NewEncoder(&b)
			_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			for range 900 {
				_ = e.WriteField(hpack.HeaderField{Name: "a", Value: strings.Repeat("x", 3000)})
			}
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, b.Bytes())
		}},
		"DATA before HEADERS": {codeProtocol, ErrMalformed, func(p *peer, id uint32) { _ = p.WriteData(id, false, []byte("x")) }},
		"more than the length": {codeProtocol, ErrMalformed, func(p *peer, id uint32) {
			p.headers(id, false, append(ok, "content-length", "1")...)
			_ = p.WriteData(id, false, []byte("xy"))
		}},
		"a body of 204": {codeProtocol, ErrMalformed, func(p *peer, id uint32) {
			p.headers(id, false, ":status", "204")
			_ = p.WriteData(id, true, []byte("x"))
		}},
		"trailers that do not end": {codeProtocol, ErrMalformed, func(p *peer, id uint32) {
			p.headers(id, false, ok...)
			p.headers(id, false, "a", "b")
		}},
		"trailers with a status": {codeProtocol, ErrMalformed, func(p *peer, id uint32) {
			p.headers(id, false, ok...)
			p.headers(id, true, ok...)
		}},
		"more than the window": {codeFlowControl, ErrMalformed, func(p *peer, id uint32) {
			p.headers(id, false, ok...)
			for range streamWindow/minFrame + 1 {
				_ = p.WriteData(id, false, make([]byte, minFrame))
			}
		}},
		"WINDOW_UPDATE of nothing":    {codeProtocol, ErrMalformed, func(p *peer, id uint32) { _ = p.WriteWindowUpdate(id, 0) }},
		"a window beyond the largest": {codeFlowControl, ErrMalformed, func(p *peer, id uint32) { _ = p.WriteWindowUpdate(id, maxWindow) }},
		"informational responses without end": {codeProtocol, ErrMalformed, func(p *peer, id uint32) {
			for range maxInterim + 1 {
				p.headers(id, false, ":status", "103")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, p := begin(t)
			s := open(t, conn)
			id := p.request()
			c.violate(p, id)
			reset := p.next(http2.FrameRSTStream).(*http2.RSTStreamFrame)
			if reset.StreamID != id || reset.ErrCode != c.code {
				t.Errorf("reset of %d with %v, want %v", reset.StreamID, reset.ErrCode, c.code)
			}
			var err error
			for err == nil {
				// Informational responses may come first.
				if _, err = s.Header(t.Context(), long); err == nil && s.hasHead {
					_, _, err = readAll(t, s)
				}
			}
			if !errors.Is(err, c.want) || !OfStream(err) {
				t.Errorf("the stream ended with %v, want %v", err, c.want)
			}
			other := open(t, conn)
			p.respond(p.request(), "ok")
			wantBody(t, other, "ok")
		})
	}
}

// Fields of a connection have no meaning in HTTP/2, and go no further; blanks around values are none of theirs.
func TestFieldsOfHTTP1AreDropped(t *testing.T) {
	c, p := begin(t)
	s := open(t, c)
	p.headers(p.request(), true, ":status", "200", "connection", "x", "transfer-encoding", "chunked", "x", " y ")
	h, err := s.Header(t.Context(), long)
	if err != nil || len(h.Fields) != 1 || h.Fields[0] != (Field{"x", "y"}) {
		t.Errorf("%v %v", h, err)
	}
}
