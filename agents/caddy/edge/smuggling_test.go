package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

// field is one of a request of HTTP/2 or HTTP/3, as it goes over the wire.
type field struct{ name, value string }

// smuggled is a request that a reader of HTTP/1 could take for another one, or for two. In values, {id} is the case's.
type smuggled struct {
	name   string
	fields []field
	body   string
	// Fields behind the body.
	trailer []field
	// What the one request at the origin is, "" for none: method, target, host, body.
	passes string
	// The origin may get it all the same where the client is told of a refusal, and the client where it is not: what is wrong
	// is the end of its body, which comes when the request is under way. What the origin gets then begins as this does.
	either bool
}

const anotherRequest = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"

// usual are the fields of a plain request with some put in their place, and others behind.
func usual(changes ...field) []field {
	fields := []field{{":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/case-{id}"}}
	for _, change := range changes {
		at := slices.IndexFunc(fields[:4], func(f field) bool { return f.name == change.name })
		if at >= 0 {
			fields[at] = change
		} else {
			fields = append(fields, change)
		}
	}
	return fields
}

func without(name string, more ...field) []field {
	return append(slices.DeleteFunc(usual(), func(f field) bool { return f.name == name }), more...)
}

const passedGet, passedPost = "GET /case-{id} a.test ", "POST /case-{id} a.test "

// smuggledCases are made anew for each use.
func smuggledCases() (cases []smuggled) {
	add := func(passes, name string, body string, fields []field) {
		cases = append(cases, smuggled{name: name, fields: fields, body: body, passes: passes})
	}
	post := func(more ...field) []field { return usual(append([]field{{":method", "POST"}}, more...)...) }
	add(passedGet, "a plain request", "", usual())
	add(passedPost+"hello", "a body", "hello", post())
	add(passedPost+"hello", "a body with its length", "hello", post(field{"content-length", "5"}))
	add(passedPost+anotherRequest, "a request as a body", anotherRequest, post())
	add(passedGet+anotherRequest, "a request as the body of a GET", anotherRequest, usual())
	either := func(name, body string, fields []field) {
		add(passedPost, name, body, fields)
		cases[len(cases)-1].either = true
	}
	for _, length := range []string{"", "0", "3", "50", "18446744073709551621"} {
		either("a body of another length: "+length, "hello", post(field{"content-length", length}))
	}
	either("a length without a body", "", post(field{"content-length", "5"}))
	for _, length := range []string{"+5", "-5", "0x5", "5,5", "5 5", "abc"} {
		add("", "a body of another length: "+length, "hello", post(field{"content-length", length}))
	}
	for _, f := range []field{
		{"content-length", "50"}, {"transfer-encoding", "chunked"}, {"host", "b.test"}, {":path", "/smuggled"}, {"connection", "close"}, {"authorization", "x"}, {"x\r\ny", "1"},
	} {
		either("a trailer "+f.name, "hello", post(field{"trailer", f.name}))
		cases[len(cases)-1].trailer = []field{f}
		either("a trailer that is not announced: "+f.name, "hello", post())
		cases[len(cases)-1].trailer = []field{f}
	}
	add("", "two lengths", "hello", post(field{"content-length", "5"}, field{"content-length", "0"}))
	for _, encoding := range []string{"chunked", "identity", "chunked, identity", "\x0bchunked", ""} {
		add("", fmt.Sprintf("transfer-encoding %q", encoding), "0\r\n\r\n"+anotherRequest, post(field{"transfer-encoding", encoding}))
	}
	for _, f := range []field{
		{"connection", "close"}, {"connection", "content-length"}, {"keep-alive", "x"}, {"proxy-connection", "keep-alive"},
		{"upgrade", "websocket"}, {"te", "gzip"}, {"te", "trailers, chunked"},
	} {
		add("", f.name+": "+f.value, "", usual(f))
	}
	add(passedGet, "te: trailers", "", usual(field{"te", "trailers"}))
	for _, path := range []string{
		"", "*", "case-{id}", "/case-{id} HTTP/1.1\r\nHost: a.test\r\n\r\nGET /smuggled", "/case-{id}\r\nX: y", "/case-{id}\nX: y",
		"/case-{id}\rX", "/case-{id}\x00", "/case-{id}\tx", "/case-{id}\x7f", " /case-{id}", "https://a.test/case-{id}",
		"http://b.test/case-{id}", "?case-{id}", "\\case-{id}",
	} {
		add("", fmt.Sprintf(":path %q", path), "", usual(field{":path", path}))
	}
	add("GET /case-{id}%20x a.test ", "a space in a path", "", usual(field{":path", "/case-{id} x"}))
	add(passedGet[:len("GET /case-{id}")]+"?%0d%0aX:%20y a.test ", "line breaks that are encoded", "", usual(field{":path", "/case-{id}?%0d%0aX:%20y"}))
	for _, method := range []string{"", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET", "G ET", "GET\r\n", "GET\x00", "G(T", "CONNECT", "TRACE", "G\xe9T"} {
		add("", fmt.Sprintf(":method %q", method), "", usual(field{":method", method}))
	}
	for _, authority := range []string{
		"a.test\r\nX: y", "a.test\n", "a.test\x00", "a.test b.test", "a.test/x", "user@a.test", "b.test", "a.test, b.test", "a.test:80:80", "a.test#x", "a.test?x", "",
	} {
		add("", fmt.Sprintf(":authority %q", authority), "", usual(field{":authority", authority}))
	}
	for _, name := range []string{":method", ":path"} {
		add("", "without "+name, "", without(name))
	}
	for _, f := range []field{{":method", "GET"}, {":path", "/smuggled"}, {":scheme", "https"}, {":authority", "b.test"}} {
		add("", f.name+" twice", "", append(usual(), f))
		add("", f.name+" behind a field", "", append(without(f.name), field{"x-y", "z"}, f))
	}
	for _, f := range []field{{":status", "200"}, {":x", "y"}, {":", "y"}} {
		add("", "a pseudo-header "+f.name, "", append(usual(), f))
	}
	for _, name := range []string{"X-Upper", "x y", "x:y", "x\r\ny", "x\x00", "", "x\xe9", "Content-Length", "host:"} {
		add("", fmt.Sprintf("a field named %q", name), "", usual(field{name, "1"}))
	}
	for _, value := range []string{"a\r\nX: y", "a\nX", "a\rX", "a\x00", "\r\n\r\n" + anotherRequest} {
		add("", fmt.Sprintf("a value %q", value), "", usual(field{"x-y", value}))
	}
	add("", "another host beside the authority", "", usual(field{"host", "b.test"}))
	add(passedGet, "the same host beside the authority", "", usual(field{"host", "a.test"}))
	add(passedGet, "a host without an authority", "", without(":authority", field{"host", "a.test"}))
	add("", "two hosts without an authority", "", without(":authority", field{"host", "a.test"}, field{"host", "b.test"}))
	add("", "neither host nor authority", "", without(":authority"))
	for at := range cases {
		c := &cases[at]
		fill := strings.NewReplacer("{id}", strconv.Itoa(at)+"x").Replace
		c.passes = fill(c.passes)
		for i := range c.fields {
			c.fields[i].value = fill(c.fields[i].value)
		}
	}
	return cases
}

// strictOrigin writes down what it is asked, and everything that is not well formed.
type strictOrigin struct {
	mu            sync.Mutex
	asked, faults []string
}

func (o *strictOrigin) start(t *testing.T) uint32 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return uint32(listener.Addr().(*net.TCPAddr).Port)
}

func (o *strictOrigin) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(in)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				o.note(&o.faults, err.Error())
			}
			return
		}
		for name, values := range request.Header {
			if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
				o.note(&o.faults, fmt.Sprintf("%s: %q: %q", request.RequestURI, name, values))
			}
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			// One that breaks off is no request.
			return
		}
		asked := fmt.Sprintf("%s %s %s %s", request.Method, request.RequestURI, request.Host, body)
		for _, name := range slices.Sorted(maps.Keys(request.Trailer)) {
			asked += fmt.Sprintf(" %s=%s", name, request.Trailer[name])
		}
		o.note(&o.asked, asked)
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

func (o *strictOrigin) note(list *[]string, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*list = append(*list, text)
}

// askHTTP2 sends a request in frames of HTTP/2; the status of its answer, 0 where its stream or connection ends.
func askHTTP2(addr string, c *smuggled) (int, error) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test", NextProtos: []string{"h2"}})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(live.Wait)); err != nil {
		return 0, err
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, f := range c.fields {
		if err := encoder.WriteField(hpack.HeaderField{Name: f.name, Value: f.value}); err != nil {
			return 0, err
		}
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return 0, err
	}
	if err := errors.Join(framer.WriteSettings(), framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: c.body == "",
	})); err != nil {
		return 0, err
	}
	if c.body != "" {
		// The stream may have ended by now.
		_ = framer.WriteData(1, len(c.trailer) == 0, []byte(c.body))
	}
	if len(c.trailer) > 0 {
		head.Reset()
		for _, f := range c.trailer {
			if err := encoder.WriteField(hpack.HeaderField{Name: f.name, Value: f.value}); err != nil {
				return 0, err
			}
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: true})
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
				return 0, err
			}
			return 0, nil
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return strconv.Atoi(f.PseudoValue("status"))
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return 0, nil
		}
	}
}

const framedData, framedHeaders, framedSettings = 0, 1, 4

// askHTTP3 is the same in frames of HTTP/3.
func askHTTP3(addr string, c *smuggled) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), live.Wait)
	defer cancel()
	config := &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test", NextProtos: []string{http3.NextProtoH3}}
	conn, err := quic.DialAddr(ctx, addr, config, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	control, err := conn.OpenUniStream()
	if err != nil {
		return 0, err
	}
	if _, err := control.Write([]byte{0, framedSettings, 0}); err != nil {
		return 0, err
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return 0, err
	}
	_ = stream.SetDeadline(time.Now().Add(live.Wait))
	var head bytes.Buffer
	encoder := qpack.NewEncoder(&head)
	for _, f := range c.fields {
		if err := encoder.WriteField(qpack.HeaderField{Name: f.name, Value: f.value}); err != nil {
			return 0, err
		}
	}
	frame := func(kind uint64, payload []byte) []byte {
		return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
	}
	sent := frame(framedHeaders, head.Bytes())
	if c.body != "" {
		sent = append(sent, frame(framedData, []byte(c.body))...)
	}
	if len(c.trailer) > 0 {
		head.Reset()
		// Each block begins anew.
		encoder = qpack.NewEncoder(&head)
		for _, f := range c.trailer {
			if err := encoder.WriteField(qpack.HeaderField{Name: f.name, Value: f.value}); err != nil {
				return 0, err
			}
		}
		sent = append(sent, frame(framedHeaders, head.Bytes())...)
	}
	// The stream may have ended by now.
	_, _ = stream.Write(sent)
	_ = stream.Close()
	in := quicvarint.NewReader(stream)
	kind, err := quicvarint.Read(in)
	if err != nil {
		if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() && ctx.Err() != nil {
			return 0, err
		}
		return 0, nil
	}
	length, err := quicvarint.Read(in)
	if err != nil || kind != framedHeaders || length > 1<<16 {
		return 0, fmt.Errorf("the answer begins with frame %d of %d bytes: %w", kind, length, err)
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(in, answer); err != nil {
		return 0, err
	}
	next := qpack.NewDecoder().Decode(answer)
	f, err := next()
	if err != nil || f.Name != ":status" {
		return 0, fmt.Errorf("the answer begins with %v: %w", f, err)
	}
	return strconv.Atoi(f.Value)
}

// Whatever comes in fields of HTTP/2 and HTTP/3 is refused, or reaches an origin that speaks HTTP/1 as exactly one request.
func TestNothingIsSmuggledFromFieldsToLines(t *testing.T) {
	for name, ask := range map[string]func(string, *smuggled) (int, error){"HTTP2": askHTTP2, "HTTP3": askHTTP3} {
		t.Run(name, func(t *testing.T) {
			origin := new(strictOrigin)
			port := origin.start(t)
			e := live.Start(t, nil, []*edgev1.JournalRecord{
				edgetest.Header("node-1"),
				edgetest.Config(1, []*configv1.Entry{
					live.OriginPolicy(), edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test")), edgetest.Entry("site", "site-b", edgetest.Site(port, "b.test")),
					live.Certificate().HTTPS("site-a", func(m *configv1.SiteHttps) { m.Http3 = true }), live.Certificate().HTTPS("site-b"),
				}),
			}, nil)
			e.UntilHTTP3("a.test")
			origin.mu.Lock()
			origin.asked = nil
			origin.mu.Unlock()
			want := map[string]int{}
			for _, c := range smuggledCases() {
				status, err := ask(e.TLSAddr, &c)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				if c.either {
					continue
				}
				if c.passes != "" {
					want[c.passes]++
				}
				if refused := status == 0 || status >= 400 && status < 500 || status == http.StatusNotImplemented; refused != (c.passes == "") || !refused && status != http.StatusOK {
					t.Errorf("%s: %d", c.name, status)
				}
			}
			origin.mu.Lock()
			defer origin.mu.Unlock()
			got := map[string]int{}
			for _, each := range origin.asked {
				got[each]++
			}
			for _, c := range smuggledCases() {
				for each := range got {
					if c.either && strings.HasPrefix(c.passes+c.body, each) && strings.HasPrefix(each, c.passes) && got[each] == 1 {
						delete(got, each)
					}
				}
			}
			if !maps.Equal(got, want) || len(origin.faults) > 0 {
				for each, n := range got {
					if want[each] != n {
						t.Errorf("the origin got %q %d times", each, n)
					}
				}
				for each := range want {
					if got[each] == 0 {
						t.Errorf("the origin did not get %q", each)
					}
				}
				t.Errorf("%q", origin.faults)
			}
		})
	}
}

// askHTTP1 is a request with a trailer in lines of HTTP/1.
func askHTTP1(addr string, c *smuggled) (int, error) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: live.Certificate().Roots, ServerName: "a.test"})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(live.Wait)); err != nil {
		return 0, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "POST /case-1 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n")
	for _, f := range c.fields {
		if !strings.HasPrefix(f.name, ":") {
			fmt.Fprintf(&text, "%s: %s\r\n", f.name, f.value)
		}
	}
	fmt.Fprintf(&text, "\r\n%x\r\n%s\r\n0\r\n", len(c.body), c.body)
	for _, f := range c.trailer {
		fmt.Fprintf(&text, "%s: %s\r\n", f.name, f.value)
	}
	if _, err := io.WriteString(conn, text.String()+"\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Behind a body an origin gets what was announced and is the client's to say, over each version, whatever else comes there.
func TestTrailersAreThoseThatWereAnnounced(t *testing.T) {
	origin := new(strictOrigin)
	e := secureEdge(t, origin.start(t))
	e.UntilHTTP3("a.test")
	forged := []field{
		{"x-sum", "7"}, {"x-other", "1"}, {"x-svc-site", "forged"}, {"x-svc-named", "forged"}, {"x_sum", "8"}, {"x-real-ip", "192.0.2.1"},
		{"x-forwarded-for", "192.0.2.1"},
	}
	for name, ask := range map[string]func(string, *smuggled) (int, error){"HTTP1": askHTTP1, "HTTP2": askHTTP2, "HTTP3": askHTTP3} {
		t.Run(name, func(t *testing.T) {
			for announced, want := range map[string]string{
				"":                   "POST /case-1 a.test hello",
				"x-sum":              "POST /case-1 a.test hello X-Sum=[7]",
				"x-svc-named, x-sum": "POST /case-1 a.test hello X-Sum=[7]",
				"x-real-ip, x_sum":   "POST /case-1 a.test hello",
				"x-forwarded-for":    "POST /case-1 a.test hello",
			} {
				c := &smuggled{fields: usual(field{":method", "POST"}, field{":path", "/case-1"}), body: "hello", trailer: forged}
				if announced != "" {
					c.fields = append(c.fields, field{"trailer", announced})
				}
				origin.mu.Lock()
				origin.asked = nil
				origin.mu.Unlock()
				status, err := ask(e.TLSAddr, c)
				origin.mu.Lock()
				asked := slices.Clone(origin.asked)
				origin.mu.Unlock()
				if err != nil || status != http.StatusOK || len(asked) != 1 || asked[0] != want {
					t.Errorf("announced %q: %d, %v, %q", announced, status, err, asked)
				}
			}
		})
	}
	if len(origin.faults) > 0 {
		t.Errorf("%q", origin.faults)
	}
}
