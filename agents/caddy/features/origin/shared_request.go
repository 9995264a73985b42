package origin

import (
	"bytes"

	"edge.svc/caddy/features/origin/h2"
)

// sharedRequest is the request as the own client would send it, for HTTP/2.
func (t *fetch) sharedRequest(o *origin) h2.Request {
	t.head = t.appendHead(t.head[:0], o)
	text := len(t.head)
	t.head = appendBlock(t.head, t.head[:text], o.dial.tls != plain)
	return h2.Request{
		Block: t.head[text:], Body: t.small, Streamed: t.stream, HeadOnly: t.out.MethodOf(t.in) == "HEAD",
	}
}

var (
	lineEnd       = []byte("\r\n")
	hostField     = []byte("Host: ")
	versionOfHTTP = []byte(" HTTP/1.1")
	schemeNames   = map[bool][]byte{false: []byte("http"), true: []byte("https")}
)

// appendBlock appends what appendHead wrote as a header block, without the fields in which HTTP/2 has another form. The host
// is the first field.
func appendBlock(b, head []byte, secure bool) []byte {
	line, head, _ := bytes.Cut(head, lineEnd)
	method, path, _ := bytes.Cut(line, []byte{' '})
	path = bytes.TrimSuffix(path, versionOfHTTP)
	host, head, _ := bytes.Cut(head, lineEnd)
	b = h2.AppendRequest(b, method, schemeNames[secure], bytes.TrimPrefix(host, hostField), path)
	for {
		line, rest, _ := bytes.Cut(head, lineEnd)
		if len(line) == 0 {
			return b
		}
		head = rest
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Connection", "Transfer-Encoding":
			continue
		}
		b = h2.AppendField(b, name, value)
	}
}
