package origin

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/exchangetest"
)

// edge is a real HTTP server in front of a Pool.
type edge struct {
	*httptest.Server
	t          testing.TB
	transports *Transports
	state      *State
	pool       atomic.Pointer[Pool]
	// Changes an exchange before it is fetched, and its answer.
	request func(*exchange.Exchange)
	answer  func(*exchange.Answer)
	// Responds in the place of the origins, where it is set.
	instead func(*exchange.Exchange) *exchange.Answer
	// Speaks to the origins instead of the own client, where it is set.
	shared *Shared
	// Codes of failed requests, in order.
	mu    sync.Mutex
	codes []string
}

func loopbackPolicy(t testing.TB) *AddressPolicy {
	t.Helper()
	policy, err := CompilePolicy(&configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8", "::1/128"}})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func newEdge(t testing.TB, settings *configv1.OriginPool, origins ...*configv1.Origin) *edge {
	t.Helper()
	policy := loopbackPolicy(t)
	e := &edge{t: t, transports: NewTransportSet(func() *AddressPolicy { return policy }), state: NewState()}
	e.compile(settings, origins...)
	e.Server = httptest.NewUnstartedServer(exchangetest.Handler(e.fetch))
	e.Server.EnableHTTP2 = true
	e.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.Server.Start()
	t.Cleanup(func() {
		e.Server.CloseClientConnections()
		e.Server.Close()
		e.transports.CloseIdle()
	})
	return e
}

func (e *edge) compile(settings *configv1.OriginPool, origins ...*configv1.Origin) {
	e.t.Helper()
	p, err := Compile("site", origins, settings, e.state)
	if err != nil {
		e.t.Fatal(err)
	}
	e.pool.Store(p)
}

// fetch answers as the edge does, with pages that are easy to tell.
func (e *edge) fetch(x *exchange.Exchange) *exchange.Answer {
	x.In.Client, x.In.Scheme, x.In.ID = netip.MustParseAddr("192.0.2.77"), "https", "req-00000001"
	if e.request != nil {
		e.request(x)
	}
	if e.instead != nil {
		return e.instead(x)
	}
	pool := e.pool.Load()
	a := pool.Refuse(x)
	if a == nil {
		a = Fetcher{Transports: e.transports, CDNLoop: "svc-0123456789abcdef", Pool: pool, Shared: e.shared}.Respond(x)
	}
	if a.Code != "" {
		e.mu.Lock()
		e.codes = append(e.codes, a.Code)
		e.mu.Unlock()
		a.Bytes = []byte("edge: " + a.Code)
	}
	if e.answer != nil {
		e.answer(a)
	}
	if !a.Drop {
		a.Header["X-Request-Id"] = []string{x.In.ID}
	}
	return a
}

// settings are those of the console's defaults, with short timeouts.
func settings(change ...func(*configv1.OriginPool)) *configv1.OriginPool {
	p := &configv1.OriginPool{
		Policy: configv1.BalancePolicy_BALANCE_POLICY_ROUND_ROBIN, TlsVerify: true, Websocket: true, Keepalive: true,
		MaxFails: 3, RecoverySeconds: 30, Tries: 3, StatusRetry: true, ConnectTimeoutMs: 5000, SendTimeoutMs: 20_000,
		ReadTimeoutMs: 20_000, KeepaliveIdleSeconds: 60, KeepaliveMaxRequests: 1000,
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func originAt(id, address string) *configv1.Origin {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	n, _ := strconv.Atoi(port)
	return &configv1.Origin{Id: id, Address: host, Port: uint32(n), Weight: 1}
}

// httpOrigin is an origin that behaves.
func httpOrigin(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func addressOf(s *httptest.Server) string { return s.Listener.Addr().String() }

// rawOrigin is an origin that sends exactly what serve writes; serve gets each connection in turn.
type rawOrigin struct {
	net.Listener
	connections atomic.Int64
}

func newRawOrigin(t testing.TB, serve func(c net.Conn, number int64)) *rawOrigin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &rawOrigin{Listener: l}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			n := o.connections.Add(1)
			all.Go(func() {
				defer c.Close()
				serve(c, n)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return o
}

// readRequest reads one request with its body as raw text.
func readRequest(r *bufio.Reader) (head string, body string, err error) {
	var b strings.Builder
	length, chunked := 0, false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		b.WriteString(line)
		if line == "\r\n" {
			break
		}
		if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(v))
		}
		chunked = chunked || strings.HasPrefix(line, "Transfer-Encoding: chunked")
	}
	if !chunked {
		data := make([]byte, length)
		_, err := io.ReadFull(r, data)
		return b.String(), string(data), err
	}
	var data strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(line), 16, 32)
		if err != nil {
			return "", "", err
		}
		if size == 0 {
			break
		}
		if _, err := io.CopyN(&data, r, size); err != nil {
			return "", "", err
		}
		r.Discard(2)
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		if line == "\r\n" {
			return b.String(), data.String(), nil
		}
		data.WriteString("|" + strings.TrimSpace(line))
	}
}

// answering serves every request of every connection with the same bytes and hands out what it read.
func answering(t testing.TB, answer string) (*rawOrigin, chan string) {
	seen := make(chan string, 100)
	o := newRawOrigin(t, func(c net.Conn, _ int64) {
		r := bufio.NewReader(c)
		for {
			head, body, err := readRequest(r)
			if err != nil {
				return
			}
			seen <- head + body
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
	return o, seen
}

// once serves one request per connection and closes it.
func once(t testing.TB, answer string) *rawOrigin {
	return newRawOrigin(t, func(c net.Conn, _ int64) {
		if _, _, err := readRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, answer)
	})
}

// dead is an address nothing listens on.
const dead = "127.0.0.1:1"

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// raw sends bytes to the edge and returns all it answers until it closes the connection or says Connection: close.
func (e *edge) raw(request string) string {
	e.t.Helper()
	c, err := net.Dial("tcp", e.Listener.Addr().String())
	if err != nil {
		e.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		e.t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		e.t.Fatalf("after %q: %v", all, err)
	}
	return string(all)
}

// get asks for a path and returns status and body.
func (e *edge) get(path string) (int, string) {
	e.t.Helper()
	res, err := http.Get(e.URL + path)
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func (e *edge) wantGet(path string, status int, body string) {
	e.t.Helper()
	if s, b := e.get(path); s != status || b != body {
		e.t.Fatalf("GET %s: got %d %q, want %d %q", path, s, b, status, body)
	}
}

func numbered(format string, n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf(format, i)
	}
	return s
}

// listOf is origins whose ids are their numbers.
func listOf(addresses ...string) (list []*configv1.Origin) {
	for i, address := range addresses {
		list = append(list, originAt(strconv.Itoa(i), address))
	}
	return list
}
