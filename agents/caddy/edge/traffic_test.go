package edge

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edge.svc/caddy/features/count"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/listen"
)

// countingProxy passes connections on and counts every byte. When a client leaves, it still reads all that the edge sends.
type countingProxy struct {
	net.Listener
	edge     string
	up, down atomic.Int64
	open     sync.WaitGroup
}

func startProxy(t *testing.T, edge string) *countingProxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &countingProxy{Listener: ln, edge: edge}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.open.Add(1)
			go p.pass(client)
		}
	}()
	return p
}

func (p *countingProxy) pass(client net.Conn) {
	defer p.open.Done()
	defer client.Close()
	edge, err := net.Dial("tcp", p.edge)
	if err != nil {
		return
	}
	defer edge.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, _ := io.Copy(edge, client)
		p.up.Add(n)
		_ = edge.(*net.TCPConn).CloseWrite()
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := edge.Read(buffer)
		p.down.Add(int64(n))
		// A client that left takes nothing more.
		_, _ = client.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	// Whatever the client still sends, nobody reads it.
	_ = client.(*net.TCPConn).CloseWrite()
	_ = client.SetReadDeadline(time.Now().Add(20 * time.Second))
	<-done
}

// trafficOrigin reads what it is sent and answers with as many bytes as it is asked for. It echoes in a WebSocket.
func trafficOrigin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	size := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("size"), &size)
	if r.URL.Query().Has("chunked") {
		_ = http.NewResponseController(w).Flush()
	} else {
		w.Header()["Content-Length"] = []string{fmt.Sprint(size)}
	}
	_, _ = io.WriteString(w, strings.Repeat("x", size))
}

// visitor sends requests and knows what each site got from it.
type visitor struct {
	t        *testing.T
	proxy    *countingProxy
	random   *rand.Rand
	received map[string]uint64
	requests map[string]uint64
}

func (v *visitor) dial() (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", v.proxy.Addr().String())
	if err != nil {
		v.t.Error(err)
		return nil, nil
	}
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn, bufio.NewReader(conn)
}

// say counts what is sent for a site as one request, "" for the node.
func (v *visitor) say(conn io.Writer, site, text string) {
	v.received[site] += uint64(len(text))
	v.requests[site]++
	_, _ = io.WriteString(conn, text)
}

// more is what is sent beyond what a request began with.
func (v *visitor) more(conn io.Writer, site, text string) {
	v.received[site] += uint64(len(text))
	_, _ = io.WriteString(conn, text)
}

func (v *visitor) answer(r *bufio.Reader, method string, status int) {
	response, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		v.t.Errorf("no answer: %v", err)
		return
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != status {
		v.t.Errorf("%d, not %d: %v", response.StatusCode, status, err)
	}
}

func (v *visitor) site() string { return []string{"a", "b"}[v.random.IntN(2)] }

func (v *visitor) get(site string, size int) string {
	return v.getAs([]string{"identity", "gzip", "br, gzip;q=0.5"}[v.random.IntN(3)], site, size)
}

func (v *visitor) getAs(accepted, site string, size int) string {
	chunked := ""
	if v.random.IntN(3) == 0 {
		chunked = "&chunked"
	}
	return fmt.Sprintf("GET /?size=%d%s HTTP/1.1\r\nHost: %s.com\r\nAccept-Encoding: %s\r\nX-Filling: %s\r\n\r\n", size, chunked, site, accepted, strings.Repeat("f", v.random.IntN(300)))
}

// visit opens one connection of some kind.
func (v *visitor) visit() {
	conn, r := v.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	const last = "Connection: close\r\n\r\n"
	site, size := v.site(), v.random.IntN(20_000)
	switch v.random.IntN(9) {
	case 0: // One after the other on a connection.
		for range 1 + v.random.IntN(6) {
			site = v.site()
			v.say(conn, site, v.get(site, v.random.IntN(9000)))
			v.answer(r, "GET", 200)
		}
	case 1: // An upload, then another request.
		v.say(conn, site, fmt.Sprintf("POST /?size=%d HTTP/1.1\r\nHost: %s.com\r\nContent-Length: %d\r\n\r\n%s", size, site, size, strings.Repeat("u", size)))
		v.answer(r, "POST", 200)
		v.say(conn, "b", v.get("b", 10))
		v.answer(r, "GET", 200)
	case 2: // A chunked upload ends its connection.
		v.say(conn, site, "PUT /?size=7 HTTP/1.1\r\nHost: "+site+".com\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range v.random.IntN(5) {
			n := 1 + v.random.IntN(4000)
			v.more(conn, site, fmt.Sprintf("%x;extension\r\n%s\r\n", n, strings.Repeat("c", n)))
		}
		v.more(conn, site, "0\r\nTrailer: x\r\n\r\n")
		v.answer(r, "PUT", 200)
	case 3: // Several at once, the last one bad.
		var all strings.Builder
		n := 1 + v.random.IntN(4)
		for range n {
			site = v.site()
			v.say(&all, site, v.get(site, v.random.IntN(500)))
		}
		v.say(&all, "", "GET / HTTP/1.1\r\nHost: a b\r\nBad Field: x\r\n\r\n")
		_, _ = io.WriteString(conn, all.String())
		for range n {
			v.answer(r, "GET", 200)
		}
		v.answer(r, "GET", 400)
	case 4: // An upload that ends in the middle.
		v.say(conn, site, fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s.com\r\nContent-Length: %d\r\n\r\n%s", site, size+1, strings.Repeat("u", size)))
	case 5: // A download that nobody reads to its end.
		v.say(conn, site, v.getAs("identity", site, 300_000))
		_, _ = io.CopyN(io.Discard, r, 1000)
	case 6: // Both ways after an upgrade.
		v.say(conn, site, "GET / HTTP/1.1\r\nHost: "+site+".com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if response, err := http.ReadResponse(r, nil); err != nil || response.StatusCode != 101 {
			v.t.Errorf("%v %v", response, err)
			return
		}
		for range 1 + v.random.IntN(5) {
			text := strings.Repeat("w", 1+v.random.IntN(9000))
			v.more(conn, site, text)
			if _, err := io.ReadFull(r, make([]byte, len(text))); err != nil {
				v.t.Error(err)
			}
		}
	case 7: // What is of no site.
		v.say(conn, "", "GET / HTTP/1.1\r\nHost: unknown.com\r\n\r\n")
		v.answer(r, "GET", 404)
		v.say(conn, "", "HEAD /.svc/health HTTP/1.1\r\nHost: 192.0.2.9\r\n\r\n")
		v.answer(r, "HEAD", 200)
		v.say(conn, site, "HEAD /?size=9 HTTP/1.1\r\nHost: "+site+".com\r\n"+last)
		v.answer(r, "HEAD", 200)
	case 8: // Old, careful, and not finished.
		v.say(conn, site, "GET /?size=5 HTTP/1.1\r\nHost: "+site+".com\r\nExpect: 100-continue\r\n\r\n")
		v.answer(r, "GET", 200)
		// The server says that this is no request, to nobody.
		v.say(conn, "", "GET / HTT")
	}
}

func serveTraffic(t *testing.T) (*edge, *countingProxy) {
	origin := httptest.NewServer(http.HandlerFunc(trafficOrigin))
	t.Cleanup(origin.Close)
	port := uint32(origin.Listener.Addr().(*net.TCPAddr).Port)
	h := newHandler(t,
		edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}}),
		edgetest.Entry("site", "a", edgetest.Site(port, "a.com")), edgetest.Entry("site", "b", edgetest.Site(port, "b.com")))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = h.ServeHTTP(w, r, nil) }))
	wrapper := listen.New(h.core, listen.NewRegistry())
	wrapper.Serve(server.Config)
	server.Listener = wrapper.WrapListener(server.Listener)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return h, startProxy(t, server.Listener.Addr().String())
}

// drainInto takes what was counted and adds it up by site.
func drainInto(h *edge, sums map[string]*nodev1.SiteMinute, acknowledged *uint64) {
	batch := count.Of(h.core).Drain(*acknowledged)
	*acknowledged = batch.GetSequence()
	for _, minute := range batch.GetMinutes() {
		sum := sums[minute.GetSiteId()]
		if sum == nil {
			sum = &nodev1.SiteMinute{}
			sums[minute.GetSiteId()] = sum
		}
		sum.Requests += minute.GetRequests()
		sum.BytesSent += minute.GetBytesSent()
		sum.BytesReceived += minute.GetBytesReceived()
		sum.CacheHits += minute.GetCacheHits()
		sum.CacheMisses += minute.GetCacheMisses()
		sum.CacheHitBytes += minute.GetCacheHitBytes()
		sum.Statuses = append(sum.Statuses, minute.GetStatuses()...)
	}
}

// Uploads, chunked, kept connections, several requests at once, bad and aborted ones and upgrades: what sites and the
// node are told to have carried is what a proxy before them saw, to the byte.
func TestCountsAreWhatAProxyBeforeTheEdgeSaw(t *testing.T) {
	h, proxy := serveTraffic(t)
	const workers, visits = 8, 100
	visitors := make([]*visitor, workers)
	var wg sync.WaitGroup
	for i := range visitors {
		v := &visitor{t, proxy, rand.New(rand.NewPCG(uint64(i), 13)), map[string]uint64{}, map[string]uint64{}}
		visitors[i] = v
		wg.Go(func() {
			for range visits {
				v.visit()
			}
		})
	}
	wg.Wait()
	proxy.open.Wait()
	received, requests := map[string]uint64{}, map[string]uint64{}
	for _, v := range visitors {
		for site, n := range v.received {
			received[site] += n
			requests[site] += v.requests[site]
		}
	}
	sums, acknowledged := map[string]*nodev1.SiteMinute{"": {}, "a": {}, "b": {}}, uint64(0)
	total := func() (up, down uint64) {
		for _, sum := range sums {
			up += sum.GetBytesReceived()
			down += sum.GetBytesSent()
		}
		return up, down
	}
	// The last connections are still being closed.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		drainInto(h, sums, &acknowledged)
		up, down := total()
		if up == uint64(proxy.up.Load()) && down == uint64(proxy.down.Load()) {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d up and %d down, the proxy saw %d and %d", up, down, proxy.up.Load(), proxy.down.Load())
			break
		}
	}
	for site, sum := range sums {
		answered := uint64(0)
		for _, status := range sum.GetStatuses() {
			answered += status.GetCount()
		}
		if sum.GetBytesReceived() != received[site] || sum.GetRequests() != requests[site] || answered > requests[site] {
			t.Errorf("site %q: %d requests, %d answers, %d bytes; it was sent %d requests, %d bytes",
				site, sum.GetRequests(), answered, sum.GetBytesReceived(), requests[site], received[site])
		}
	}
}

// A download that goes on counts from its first second on, and so does its request.
func TestBytesCountWhileTheyFlow(t *testing.T) {
	h, proxy := serveTraffic(t)
	v := &visitor{t, proxy, rand.New(rand.NewPCG(1, 1)), map[string]uint64{}, map[string]uint64{}}
	conn, r := v.dial()
	defer conn.Close()
	v.say(conn, "a", "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if _, err := http.ReadResponse(r, nil); err != nil {
		t.Fatal(err)
	}
	const text = "still open"
	_, _ = io.WriteString(conn, text)
	if _, err := io.ReadFull(r, make([]byte, len(text))); err != nil {
		t.Fatal(err)
	}
	sums, acknowledged := map[string]*nodev1.SiteMinute{"a": {}}, uint64(0)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		drainInto(h, sums, &acknowledged)
		a := sums["a"]
		if a.GetRequests() == 1 && a.GetBytesReceived() == v.received["a"]+uint64(len(text)) && a.GetBytesSent() == uint64(proxy.down.Load()) &&
			len(a.GetStatuses()) == 1 && a.GetStatuses()[0].GetCode() == 101 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v; the proxy passed %d", a, proxy.down.Load())
		}
	}
}
