package origin

import (
	"iter"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"edge.svc/caddy/exchange"
)

// appendHead appends the request line and header for an origin to b.
func (t *fetch) appendHead(b []byte, o *origin) []byte {
	in, out := t.in, t.out
	method := out.MethodOf(in)
	b = append(b, method...)
	b = append(b, ' ')
	b = appendTarget(b, out.TargetOf(in).Raw)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = t.appendHost(b, o)
	b = append(b, '\r', '\n')
	ofHop := namedSet(in.Header["Connection"])
	for name, values := range in.Header {
		if edgeOwns(name) || ofHop[name] || out.Withholds(name) || len(out.Edits) > 0 && out.Replaces(name) {
			continue
		}
		for _, value := range values {
			b = t.appendOf(b, name, value)
		}
	}
	for _, edit := range out.Edits {
		if edgeFrames(edit.Name) || out.Withholds(edit.Name) {
			continue
		}
		for _, value := range edit.Values {
			b = t.appendOf(b, edit.Name, value)
		}
	}
	if in.Client.IsValid() && !out.Replaces("X-Real-Ip") {
		b = append(b, "X-Real-IP: "...)
		b = append(in.Client.AppendTo(b), '\r', '\n')
	}
	if !out.Replaces("X-Forwarded-For") {
		b = append(b, "X-Forwarded-For: "...)
		if !in.HideForwardedFor {
			b = appendChain(b, in.Header["X-Forwarded-For"])
		}
		b = append(in.Peer.AppendTo(b), '\r', '\n')
	}
	if !out.Replaces("X-Forwarded-Proto") {
		b = appendField(b, "X-Forwarded-Proto", in.Scheme)
	}
	if !out.Replaces("X-Forwarded-Host") {
		b = append(b, "X-Forwarded-Host: "...)
		b = appendAuthority(b, in.HostRaw, in.Scheme)
		b = append(b, '\r', '\n')
	}
	if in.Port != 0 && !out.Replaces("X-Forwarded-Port") {
		b = append(b, "X-Forwarded-Port: "...)
		b = strconv.AppendUint(b, uint64(in.Port), 10)
		b = append(b, '\r', '\n')
	}
	if in.ID != "" && !out.Replaces("X-Request-Id") {
		b = appendField(b, "X-Request-Id", in.ID)
	}
	if t.CDNLoop != "" {
		b = append(b, "CDN-Loop: "...)
		b = appendChain(b, in.Header["Cdn-Loop"])
		b = append(appendValue(b, t.CDNLoop), '\r', '\n')
	}
	takesTrailers := exchange.HasToken(in.Header["Te"], "trailers")
	switch {
	case in.Upgrade:
		b = append(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case takesTrailers && !t.Pool.keepalive:
		b = append(b, "TE: trailers\r\nConnection: close, TE\r\n"...)
	case takesTrailers:
		// RFC 9110 §10.1.4: without the option an origin may take TE for another hop's.
		b = append(b, "TE: trailers\r\nConnection: TE\r\n"...)
	case !t.Pool.keepalive:
		b = append(b, "Connection: close\r\n"...)
	}
	return append(t.appendFraming(b, method), '\r', '\n')
}

// appendOf appends a field, without what is the edge's own in it.
func (t *fetch) appendOf(b []byte, name, value string) []byte {
	if t.Pool.affinitySeconds > 0 && name == "Cookie" {
		if value = withoutAffinity(value); value == "" {
			return b
		}
	}
	return appendField(b, name, value)
}

// appendHost appends the host of the origin, or of a rule in its place, else what a rule put in its place, else the host that was asked for.
func (t *fetch) appendHost(b []byte, o *origin) []byte {
	switch {
	case o.hostHeader != "":
		return append(b, o.hostHeader...)
	case t.out.Host != "":
		return appendAuthority(b, t.out.Host, t.in.Scheme)
	}
	return appendAuthority(b, t.in.HostRaw, t.in.Scheme)
}

// appendFraming says how long the body is.
func (t *fetch) appendFraming(b []byte, method string) []byte {
	switch {
	case t.length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		for name := range t.in.Trailer {
			if trailerPasses(name) {
				b = appendField(b, "Trailer", name)
			}
		}
	case t.length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, t.length, 10)
		b = append(b, '\r', '\n')
	}
	return b
}

// edgeOwns names the request fields that are never copied: those of one hop, those the edge sets itself, and those in
// which a program behind an origin would believe a client that says where the request really was to go. A client cannot
// get rid of the edge's own by naming them in Connection, because they are not taken from its header.
func edgeOwns(name string) bool {
	switch name {
	case "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id",
		"Forwarded", "X-Forwarded-Host", "X-Forwarded-Port", "X-Original-Url", "X-Rewrite-Url":
		return true
	}
	return edgeFrames(name)
}

// trailerPasses reports whether origins get a field behind a body.
func trailerPasses(name string) bool { return !edgeOwns(name) && trailerAllowed(name) }

// edgeFrames names those that rules do not change either: the connection and the way of the request hang on them.
func edgeFrames(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Host", "Cdn-Loop":
		return true
	}
	return strings.HasPrefix(name, "X-Svc-")
}

// endToEnd names request fields that are never of one hop: RFC 9110 §7.6.1 forbids clients to name them in Connection. A
// client could otherwise show a rule or the WAF a field that its origin does not get.
func endToEnd(name string) bool {
	switch name {
	case "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Content-Encoding",
		"Content-Language", "Content-Location", "Content-Range", "Content-Type", "Cookie", "Date", "From", "Max-Forwards", "Origin",
		"Pragma", "Range", "Referer", "User-Agent", "Via":
		return true
	}
	return strings.HasPrefix(name, "If-") || strings.HasPrefix(name, "Sec-")
}

// namedSet is the fields that Connection names and that are of one hop, nil where it names none.
func namedSet(values []string) (set map[string]bool) {
	for name := range named(values) {
		if endToEnd(name) {
			continue
		}
		if set == nil {
			set = map[string]bool{}
		}
		set[name] = true
	}
	return set
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

// appendAuthority appends a requested host in lower case: without the dot at its end that sites are found with all the same,
// and with its port unless that is the default one of the scheme.
func appendAuthority(b []byte, host, scheme string) []byte {
	colon := strings.LastIndexByte(host, ':')
	if colon < strings.IndexByte(host, ']') {
		colon = -1
	}
	if colon < 0 {
		return appendLower(b, strings.TrimSuffix(host, "."))
	}
	b = appendLower(b, strings.TrimSuffix(host[:colon], "."))
	port, err := strconv.ParseUint(host[colon+1:], 10, 16)
	if err != nil || port == 0 || port == 80 && scheme == "http" || port == 443 && scheme == "https" {
		return b
	}
	return strconv.AppendUint(append(b, ':'), port, 10)
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
	b = append(b, exchange.Spelled(name)...)
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
