package requestlog

import (
	"crypto/tls"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"edge.svc/caddy/exchange"
)

// Bytes that fields have at most.
const (
	maxSite      = 64
	maxMethod    = 32
	maxHost      = 253
	maxPath      = 2048
	maxID        = 128
	maxJA4       = 36
	maxAgent     = 512
	maxReferer   = 1024
	maxNetwork   = 128
	maxUpstream  = 64
	maxType      = 128
	maxRule      = 80
	maxQuery     = 2048
	maxValue     = 512
	maxCode      = 64
	maxRules     = 8
	maxDuration  = 86_400_000
	platformRule = "platform:"
)

// appendRow encodes svc.node.v1.LogRow. The general encoder takes several times as long.
func (l *Log) appendRow(b []byte, x *exchange.Exchange, s *settings, rate uint32, why refusal, now time.Time) []byte {
	in := &x.In
	received, sent := x.Traffic()
	b = protowire.AppendFixed64(protowire.AppendTag(b, 1, protowire.Fixed64Type), l.boot)
	b = number(b, 2, x.Row())
	b = number(b, 3, uint64(max(now.UnixMilli()+l.offsetMs.Load(), 0)))
	b = text(b, 4, x.Plan.SiteID, maxSite)
	b = address(b, 5, in.Client)
	b = text(b, 6, in.Method, maxMethod)
	b = text(b, 7, in.Host, maxHost)
	path, query, _ := strings.Cut(in.Target.Raw, "?")
	b = text(b, 8, path, maxPath)
	b = number(b, 9, uint64(x.Status()))
	b = number(b, 10, uint64(max(sent, 0)))
	b = number(b, 11, uint64(max(received, 0)))
	b = number(b, 12, uint64(min(max(now.Sub(x.Begun).Milliseconds(), 0), maxDuration)))
	if state, known := exchange.CacheStatus.Known(x); known {
		b = text(b, 13, state.Word, maxMethod)
	}
	b = number(b, 14, uint64(rate))
	b = text(b, 15, in.ID, maxID)
	if in.Handshake != nil && ja4.Of(x.Plan) != nil {
		b = text(b, 16, in.JA4(), maxJA4)
	}
	if _, known := exchange.WAF.Known(x); known {
		found := exchange.WAF.Of(x)
		for _, rule := range found.Logged() {
			b = number(b, 17, uint64(rule))
		}
		b = flag(b, 18, found.Blocked)
	}
	b = text(b, 19, first(in.Header["User-Agent"]), maxAgent)
	if referer := first(in.Header["Referer"]); referer != "" {
		if end := strings.IndexAny(referer, "?#"); end >= 0 {
			referer = referer[:end]
		}
		b = text(b, 20, referer, maxReferer)
	}
	if _, known := exchange.Matched.Known(x); known {
		rules := exchange.Matched.Of(x).Logged()
		for _, m := range rules[:min(len(rules), maxRules)] {
			if m.Rule.Platform {
				b = text(b, 21, platformRule+m.Rule.ID, maxRule)
			} else {
				b = text(b, 21, m.Rule.ID, maxRule)
			}
		}
	}
	if s.peer {
		b = address(b, 22, in.Peer)
	}
	b = text(b, 23, version(in.Major, in.Minor), 3)
	b = flag(b, 24, in.Secure())
	place := exchange.PlaceOf(x, l.geo())
	b = text(b, 25, place.Country, 2)
	b = number(b, 26, uint64(place.AS))
	b = text(b, 27, place.Network, maxNetwork)
	if at := exchange.Origin.Peek(x); at != nil {
		if at.Address.IsValid() {
			var room [maxUpstream]byte
			b = protowire.AppendTag(b, 28, protowire.BytesType)
			b = protowire.AppendBytes(b, at.Address.AppendTo(room[:0]))
		}
		b = number(b, 29, uint64(at.Status))
		b = number(b, 30, uint64(min(max(at.FirstByte.Milliseconds(), 0), maxDuration)))
	}
	if x.Status() != 0 {
		media, _, _ := strings.Cut(first(x.Writer().Header()["Content-Type"]), ";")
		b = text(b, 31, strings.TrimSpace(media), maxType)
	}
	if in.TLS != nil {
		b = text(b, 32, tlsVersion(in.TLS.Version), 3)
	}
	b = text(b, 33, why.reason, maxMethod)
	b = text(b, 34, why.rule, maxRule)
	if s.query {
		b = text(b, 35, query, maxQuery)
	}
	for _, h := range s.headers {
		if values := in.Header[h.canonical]; len(values) > 0 {
			b = appendHeader(b, h.name, values[0])
		}
	}
	if from, code := x.Responded(); from == exchange.FromEdge {
		b = text(b, 37, code, maxCode)
	}
	return b
}

func appendHeader(b []byte, name, value string) []byte {
	value = clean(value, maxValue)
	size := protowire.SizeTag(1) + protowire.SizeBytes(len(name)) + protowire.SizeTag(2) + protowire.SizeBytes(len(value))
	b = protowire.AppendVarint(protowire.AppendTag(b, 36, protowire.BytesType), uint64(size))
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func flag(b []byte, field protowire.Number, on bool) []byte {
	if !on {
		return b
	}
	return number(b, field, 1)
}

func text(b []byte, field protowire.Number, v string, most int) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), clean(v, most))
}

func address(b []byte, field protowire.Number, addr netip.Addr) []byte {
	if !addr.IsValid() {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	if addr = addr.Unmap(); addr.Is4() {
		four := addr.As4()
		return protowire.AppendBytes(b, four[:])
	}
	sixteen := addr.As16()
	return protowire.AppendBytes(b, sixteen[:])
}

// clean is text that every database takes: valid UTF-8 without NUL, of so many bytes at most.
func clean(s string, most int) string {
	if len(s) > most {
		s = s[:most]
		// A character that was cut apart goes as a whole; what is no character at all is replaced below.
		for cut := len(s); cut > 0 && cut > most-utf8.UTFMax; cut-- {
			if utf8.RuneStart(s[cut-1]) {
				if !utf8.FullRuneInString(s[cut-1:]) {
					s = s[:cut-1]
				}
				break
			}
		}
	}
	for i := range len(s) {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			return strings.ReplaceAll(replaced(s, most), "\x00", "?")
		}
	}
	return s
}

// replaced has a question mark, which is no longer than what it stands for, in the place of what is not UTF-8.
func replaced(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	return s[:min(len(s), most)]
}

func version(major, minor int) string {
	switch {
	case major == 1 && minor == 0:
		return "1.0"
	case major == 1:
		return "1.1"
	case major == 2:
		return "2"
	case major == 3:
		return "3"
	}
	return ""
}

func tlsVersion(v uint16) string {
	switch v {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return ""
}
