package origin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// standardRequest is the request as the own client would send it, for net/http. ended is called once a body that comes from
// a client was read.
func (t *fetch) standardRequest(ctx context.Context, o *origin, ended func()) *http.Request {
	t.head = t.appendHead(t.head[:0], o)
	host, header := fieldsOf(string(t.head))
	request := (&http.Request{
		Method: t.out.MethodOf(t.in), URL: t.standardURL(o, host), Host: host, Header: header, ContentLength: t.length,
		Proto: "HTTP/2.0", ProtoMajor: 2,
	}).WithContext(ctx)
	switch {
	case t.stream:
		if t.shared == nil {
			t.body.Stream()
			t.shared = &sharedBody{body: t.body}
		}
		request.Trailer = http.Header{}
		for name := range t.in.Trailer {
			if trailerPasses(name) {
				request.Trailer[name] = nil
			}
		}
		request.Body = t.shared.begin(request.Trailer, ended)
	case len(t.small) > 0:
		request.Body = io.NopCloser(bytes.NewReader(t.small))
	}
	return request
}

// fieldsOf reads what appendHead wrote, but for the fields in which HTTP/2 has another form.
func fieldsOf(head string) (host string, header http.Header) {
	_, head, _ = strings.Cut(head, "\r\n")
	count := strings.Count(head, "\r\n")
	header = make(http.Header, count)
	slab := make([]string, 0, count)
	for {
		line, rest, _ := strings.Cut(head, "\r\n")
		if line == "" {
			break
		}
		head = rest
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Host":
			host = value
			continue
		case "Connection", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if have := header[name]; have != nil {
			header[name] = append(have, value)
			continue
		}
		slab = append(slab, value)
		header[name] = slab[len(slab)-1 : len(slab) : len(slab)]
	}
	if header["User-Agent"] == nil {
		// Else net/http has one of its own.
		header["User-Agent"] = nil
	}
	return host, header
}

// standardURL has net/http send the target as it was asked for, in whatever spelling.
func (t *fetch) standardURL(o *origin, host string) *url.URL {
	u := &url.URL{Scheme: "http", Host: host}
	if o.dial.tls != plain {
		u.Scheme = "https"
	}
	raw, query, asked := strings.Cut(string(appendTarget(nil, t.out.TargetOf(t.in).Raw)), "?")
	u.RawQuery, u.ForceQuery = query, asked
	if u.Opaque = raw; strings.HasPrefix(raw, "//") {
		// It would be taken for an authority; net/http cuts its own off.
		u.Opaque = "//" + host + raw
	}
	return u
}
