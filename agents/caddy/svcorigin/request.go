package svcorigin

import (
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
)

// Request is what the edge found out about a request before it is proxied.
type Request struct {
	// Transports makes the connections; it is the same for all sites of the node.
	Transports *Transports
	// ClientAddr is the client as the cluster's client address mode finds it; the origin gets it as X-Real-IP.
	ClientAddr netip.Addr
	// PeerAddr is the other end of the TCP connection; it is appended to X-Forwarded-For.
	PeerAddr netip.Addr
	// Scheme is http or https.
	Scheme string
	// RequestID is sent as X-Request-Id.
	RequestID string
	// CDNLoop is this node's own id, appended to the CDN-Loop header.
	CDNLoop string
	// DropForwardedFor sends only the peer as X-Forwarded-For, in direct mode.
	DropForwardedFor bool
	// Mode is "direct", "proxy_protocol" or "header".
	Mode string
	// BodyLimit is the largest request body in bytes; 0 is unlimited.
	BodyLimit int64
	// Fail answers for the edge with an error page and its code. It is called at most once, before anything else
	// was written.
	Fail func(w http.ResponseWriter, r *http.Request, status int, code string)
	// Outcome, when set, hears how the request ended at the origins.
	Outcome Outcome
	// Response, when set, may change the header of an answer just before it is written.
	Response func(status int, header http.Header)
}

// Outcome hears once how a request that was sent to an origin, or should have been, ended there: with the status of the
// answer, or 0 when there was none. It hears nothing when the client was gone before.
type Outcome interface{ OriginAnswered(status int) }

// head appends the request line and header for an origin to b. length is the length of the body, -1 for one of unknown
// length that will be chunked. upgrade keeps the WebSocket handshake.
func (in *Request) head(b []byte, r *http.Request, p *Pool, o *origin, length int64, upgrade bool) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = appendTarget(b, rawTarget(r))
	b = append(b, " HTTP/1.1\r\nHost: "...)
	if o.hostHeader != "" {
		b = append(b, o.hostHeader...)
	} else {
		b = appendLower(b, hostOf(r))
	}
	b = append(b, '\r', '\n')
	for name, values := range r.Header {
		if edgeOwns(name) {
			continue
		}
		for _, value := range values {
			b = appendField(b, name, value)
		}
	}
	if in.ClientAddr.IsValid() {
		b = append(b, "X-Real-IP: "...)
		b = append(in.ClientAddr.AppendTo(b), '\r', '\n')
	}
	b = append(b, "X-Forwarded-For: "...)
	if !(in.DropForwardedFor && in.Mode == "direct") {
		b = appendChain(b, r.Header["X-Forwarded-For"])
	}
	b = append(in.PeerAddr.AppendTo(b), '\r', '\n')
	b = appendField(b, "X-Forwarded-Proto", in.Scheme)
	if in.RequestID != "" {
		b = appendField(b, "X-Request-Id", in.RequestID)
	}
	if in.CDNLoop != "" {
		b = append(b, "CDN-Loop: "...)
		b = appendChain(b, r.Header["Cdn-Loop"])
		b = append(appendValue(b, in.CDNLoop), '\r', '\n')
	}
	if te := r.Header["Te"]; len(te) > 0 && hasToken(te, "trailers") {
		b = append(b, "Te: trailers\r\n"...)
	}
	switch {
	case upgrade:
		b = append(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case !p.keepalive:
		b = append(b, "Connection: close\r\n"...)
	}
	switch {
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		for name := range r.Trailer {
			if !edgeOwns(name) {
				b = appendField(b, "Trailer", name)
			}
		}
	case length > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, '\r', '\n')
	}
	return append(b, '\r', '\n')
}

// edgeOwns names the request fields that are never copied: those of one hop and those the edge sets itself. A client
// cannot get rid of the latter by naming them in Connection, because they are not taken from its header.
func edgeOwns(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Host",
		"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "Cdn-Loop":
		return true
	}
	return strings.HasPrefix(name, "X-Svc-")
}

// dropNamed removes the fields that Connection names from a request's header, but for those of the edge.
func dropNamed(h http.Header) {
	for name := range named(h["Connection"]) {
		if !edgeOwns(name) {
			delete(h, name)
		}
	}
}

// named lists the names of fields in Connection. Each is looked up once: looking every field up in a list of thousands
// would cost the product of both.
func named(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(values) == 1 && (values[0] == "keep-alive" || values[0] == "close") {
			return
		}
		for _, value := range values {
			for item := range strings.SplitSeq(value, ",") {
				if !yield(textproto.CanonicalMIMEHeaderKey(strings.Trim(item, " \t"))) {
					return
				}
			}
		}
	}
}

// hasToken says whether a comma-separated list holds a token, without regard to case.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			if strings.EqualFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// rawTarget is the path and query as the client sent them.
func rawTarget(r *http.Request) string {
	t := r.RequestURI
	if t == "" {
		return r.URL.RequestURI()
	}
	if t[0] == '/' || t == "*" {
		return t
	}
	// Without a host nothing says that the first "://" is not of the path or the query.
	if r.URL.Host == "" {
		return r.URL.RequestURI()
	}
	// The absolute form: cut scheme and authority.
	_, rest, _ := strings.Cut(t, "://")
	at := strings.IndexAny(rest, "/?")
	switch {
	case at < 0:
		return "/"
	case rest[at] == '?':
		return "/" + rest[at:]
	}
	return rest[at:]
}

// appendTarget copies a request target and encodes what would end it or split the line: HTTP/2 lets such bytes in.
func appendTarget(b []byte, target string) []byte {
	const hex = "0123456789ABCDEF"
	start := 0
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f || c == '#' {
			b = append(b, target[start:i]...)
			b = append(b, '%', hex[c>>4], hex[c&15])
			start = i + 1
		}
	}
	return append(b, target[start:]...)
}

// hostOf is the host without port, and without the dot at its end that sites are found with all the same.
func hostOf(r *http.Request) string {
	host := r.Host
	if strings.IndexByte(host, ':') >= 0 {
		name, _, err := net.SplitHostPort(host)
		switch {
		case err != nil:
			return host
		case strings.IndexByte(name, ':') >= 0:
			return "[" + name + "]"
		}
		host = name
	}
	return strings.TrimSuffix(host, ".")
}

func appendLower(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c > ' ' && c != 0x7f {
			b = append(b, c)
		}
	}
	return b
}

func appendChain(b []byte, values []string) []byte {
	for _, v := range values {
		if v != "" {
			b = append(appendValue(b, v), ", "...)
		}
	}
	return b
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ':', ' ')
	return append(appendValue(b, value), '\r', '\n')
}

// appendValue copies a field value; a line break in it, which the server refuses already, becomes a space.
func appendValue(b []byte, value string) []byte {
	at := len(b)
	b = append(b, value...)
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		for i := at; i < len(b); i++ {
			if b[i] == '\n' || b[i] == '\r' {
				b[i] = ' '
			}
		}
	}
	return b
}
