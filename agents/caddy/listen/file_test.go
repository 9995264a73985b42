package listen

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// plainListener wraps connections as the listener of the edge does.
type plainListener struct {
	net.Listener
	core *core.Core
}

func (l *plainListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, core: l.core}
	new(Registry).add(c)
	return c, nil
}

// Clients get parts of one file at once over connections that they use again, whatever the sizes of header and part.
func TestFilesLeaveBehindTheirHead(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	number := func(r *http.Request, name string) int64 {
		n, _ := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		return n
	}
	server := &http.Server{
		ConnContext: withConn,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			writes := &carried{conn: FromContext(r.Context()), writeIdle: time.Minute}
			if !writes.TakesFiles() {
				t.Error("no files are taken")
			}
			defer writes.ReleaseHead()
			length := number(r, "length")
			w.Header().Set("X-Pad", strings.Repeat("p", int(number(r, "header"))))
			w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
			w.WriteHeader(http.StatusOK)
			writes.HoldHead()
			w.(http.Flusher).Flush()
			if length > 0 {
				part := &exchange.FilePart{File: file, At: number(r, "from"), Left: length}
				if n, err := w.(io.ReaderFrom).ReadFrom(part); n != length || err != nil {
					t.Errorf("%d bytes of %d: %v", n, length, err)
				}
			}
		}),
	}
	counting := &plainListener{ln, newCore(t, &configv1.ClientIp{Mode: configv1.ClientIpMode_CLIENT_IP_MODE_DIRECT})}
	go server.Serve(counting)
	defer server.Close()
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			reader := bufio.NewReader(conn)
			for _, c := range []struct{ from, length, header int }{
				{0, 1, 0}, {17, 100 << 10, 10}, {5, 0, 0}, {1 << 20, 2 << 20, 5000}, {99, 70_000, 30_000}, {client, len(content) - client, 3}, {0, 0, 30_000}, {3, 5, 0},
			} {
				fmt.Fprintf(conn, "GET /?from=%d&length=%d&header=%d HTTP/1.1\r\nHost: a\r\n\r\n", c.from, c.length, c.header)
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Errorf("%+v: %v", c, err)
					return
				}
				body, err := io.ReadAll(response.Body)
				if err != nil || sha256.Sum256(body) != sha256.Sum256(content[c.from:c.from+c.length]) || len(response.Header.Get("X-Pad")) != c.header {
					t.Errorf("%+v: %d bytes, %v", c, len(body), err)
				}
			}
		})
	}
	clients.Wait()
}

// What nobody knows for a part of a file is read like anything else.
func TestAPartOfAFileCanBeRead(t *testing.T) {
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got bytes.Buffer
	if _, err := io.Copy(&got, &exchange.FilePart{File: file, At: 3, Left: 4}); err != nil || got.String() != "3456" {
		t.Errorf("%q, %v", &got, err)
	}
}
