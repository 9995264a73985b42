package origin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// fixedOrigin answers without parsing much, so that the proxy is what is measured.
func fixedOrigin(b *testing.B, size int) *rawOrigin {
	answer := []byte("HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n" +
		"Cache-Control: max-age=60\r\nETag: \"0123456789\"\r\nVary: Accept-Encoding\r\nServer: origin\r\nContent-Length: " +
		strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size))
	return newRawOrigin(b, func(c net.Conn, _ int64) {
		buffer := make([]byte, 8<<10)
		n := 0
		for {
			m, err := c.Read(buffer[n:])
			if err != nil {
				return
			}
			if n += m; n >= 4 && string(buffer[n-4:n]) == "\r\n\r\n" {
				n = 0
				if _, err := c.Write(answer); err != nil {
					return
				}
			}
		}
	})
}

func load(b *testing.B, address string, size int) {
	request := []byte("GET /index.html?a=1 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nAccept-Encoding: gzip, br\r\nCookie: a=b; c=d\r\n\r\n")
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		r := bufio.NewReaderSize(c, 64<<10)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			for {
				line, err := r.ReadSlice('\n')
				if err != nil {
					b.Error(err)
					return
				}
				if len(line) == 2 {
					break
				}
			}
			if _, err := r.Discard(size); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The server around both is the same, so the difference is the proxy's.
func BenchmarkProxy1KiB(b *testing.B) {
	o := fixedOrigin(b, 1024)
	e := newEdge(b, settings(), originAt("a", o.Addr().String()))
	load(b, e.Listener.Addr().String(), 1024)
}

// The same origin over both versions of HTTP.
func BenchmarkProxyByProtocol1KiB(b *testing.B) {
	body := strings.Repeat("x", 1024)
	serve := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
	b.Run("HTTP/1.1", func(b *testing.B) {
		load(b, newEdge(b, settings(), originAt("a", addressOf(httpOrigin(b, serve)))).Listener.Addr().String(), len(body))
	})
	b.Run("HTTP/2", func(b *testing.B) {
		load(b, newSharedEdge(b, settings(), originAt("a", addressOf(h2cOrigin(b, serve)))).Listener.Addr().String(), len(body))
	})
}

func BenchmarkStandardReverseProxy1KiB(b *testing.B) {
	o := fixedOrigin(b, 1024)
	target, _ := url.Parse("http://" + o.Addr().String())
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true},
		BufferPool: buffers{},
	}
	s := httptest.NewServer(proxy)
	defer s.Close()
	load(b, s.Listener.Addr().String(), 1024)
}

func BenchmarkNoProxy1KiB(b *testing.B) {
	body := strings.Repeat("x", 1024)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
	defer s.Close()
	load(b, s.Listener.Addr().String(), 1024)
}

type buffers struct{}

// Get is for httputil.BufferPool.
func (buffers) Get() []byte { return largeBuffers.Get().(*[largeBuffer]byte)[:] }

// Put is for httputil.BufferPool.
func (buffers) Put(b []byte) { largeBuffers.Put((*[largeBuffer]byte)(b)) }

func BenchmarkCompile(b *testing.B) {
	state := NewState()
	o := &configv1.Origin{Id: "a", Address: "origin.example.com", Port: 80, Weight: 1}
	b.ReportAllocs()
	for range b.N {
		if _, err := Compile("site", []*configv1.Origin{o}, settings(), state); err != nil {
			b.Fatal(err)
		}
	}
}
