package listen

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dialed is a client of HTTP/1, over TLS or not.
func (l *listening) dialed(overTLS bool) net.Conn {
	l.t.Helper()
	conn, err := net.Dial("tcp", at(l.base))
	if err != nil {
		l.t.Fatal(err)
	}
	if overTLS {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	l.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn
}

var plainAndTLS = map[string]bool{"plain": false, "TLS": true}

func TestEmptyLinesBetweenRequestsAreSkipped(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n"
	put := func(method string) string {
		return method + " / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 2\r\n\r\nok"
	}
	for over, overTLS := range plainAndTLS {
		l := listen(t, overTLS, Limits{})
		for name, requests := range map[string][]string{
			"first":             {"\r\n" + get},
			"LF alone, first":   {"\n" + get},
			"after GET":         {get, "\r\n" + get},
			"after HEAD-less":   {"DELETE / HTTP/1.1\r\nHost: a.com\r\n\r\n", "\r\n\r\n" + get},
			"after PUT":         {put("PUT"), "\r\n" + get},
			"after POST":        {put("POST"), "\r\n" + get},
			"after DELETE":      {put("DELETE"), "\r\n" + get},
			"with each request": {"\r\n" + get, "\r\n" + put("PUT"), "\r\n" + put("PATCH"), "\n" + get},
		} {
			// In one piece, as a pipeline, and one after the other's response.
			for _, pipelined := range []bool{true, false} {
				conn := l.dialed(overTLS)
				reader := bufio.NewReader(conn)
				if pipelined {
					_, _ = io.WriteString(conn, strings.Join(requests, ""))
				}
				for i, request := range requests {
					if !pipelined {
						_, _ = io.WriteString(conn, request)
					}
					response, err := http.ReadResponse(reader, nil)
					if err != nil {
						t.Fatalf("%s, %s, pipelined %v, response %d: %v", over, name, pipelined, i, err)
					}
					_, _ = io.Copy(io.Discard, response.Body)
					if response.StatusCode != 200 {
						t.Errorf("%s, %s, pipelined %v, response %d: %d", over, name, pipelined, i, response.StatusCode)
					}
				}
				conn.Close()
			}
		}
	}
}

// net/http refuses some requests by itself. Clients and their support see no difference.
func TestResponsesOfTheServerItselfAreThoseOfTheEdge(t *testing.T) {
	for over, overTLS := range plainAndTLS {
		l := listen(t, overTLS, Limits{})
		const get = "GET / HTTP/1.1\r\nHost: a.com\r\n"
		for name, c := range map[string]struct{ request, status, code string }{
			"no request":         {"nonsense\r\n\r\n", "400", "bad-request"},
			"CR alone":           {"\r" + get + "\r\n", "400", "bad-request"},
			"no host":            {"GET / HTTP/1.1\r\n\r\n", "400", "bad-request"},
			"two hosts":          {get + "Host: b.com\r\n\r\n", "400", "bad-request"},
			"blank in a name":    {get + "X Y: z\r\n\r\n", "400", "bad-request"},
			"blank before colon": {get + "X : z\r\n\r\n", "400", "bad-request"},
			"length and chunks":  {"POST / HTTP/1.1\r\nHost: a.com\r\nContent-Length: x\r\n\r\n", "400", "bad-request"},
			"unknown coding":     {"POST / HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: gzip\r\n\r\n", "501", "bad-request"},
			"expectation":        {get + "Expect: more\r\n\r\n", "417", "bad-request"},
			"version":            {"GET / HTTP/3.0\r\nHost: a.com\r\n\r\n", "505", "bad-request"},
			"header of 2 MiB":    {get + strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 2000) + "\r\n", "431", "header-too-large"},
			"after a request":    {get + "\r\nnonsense\r\n\r\n", "400", "bad-request"},
		} {
			conn := l.dialed(overTLS)
			go func() { _, _ = io.WriteString(conn, c.request) }()
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if name == "after a request" && err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response, err = http.ReadResponse(reader, nil)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", over, name, err)
				continue
			}
			body, _ := io.ReadAll(response.Body)
			rest, _ := io.ReadAll(reader)
			id := response.Header.Get("X-Request-Id")
			if response.Status[:3] != c.status || response.Header.Get("X-Svc-Error") != c.code || len(id) != 32 || !response.Close ||
				!strings.Contains(string(body), id) || len(rest) > 0 {
				t.Errorf("%s, %s: %s %v, %q behind it", over, name, response.Status, response.Header, rest)
			}
		}
	}
}
