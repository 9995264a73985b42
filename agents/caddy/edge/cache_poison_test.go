package edge

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// reflecting responds with all that it is told: what a client puts into a request is in the response.
func reflecting(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	for _, values := range r.Header {
		for _, value := range values {
			if strings.Contains(value, "refuse-this") {
				w.WriteHeader(http.StatusBadRequest)
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	header := maps.Clone(r.Header)
	for _, own := range []string{"X-Request-Id", "Cdn-Loop"} {
		delete(header, own)
	}
	_, _ = fmt.Fprint(w, r.Method, " ", r.Host, " ", r.RequestURI, " ")
	for _, name := range slices.Sorted(maps.Keys(header)) {
		_, _ = fmt.Fprint(w, name, header[name], " ")
	}
	_, _ = w.Write(body)
}

// A request changes nothing about what another client gets, whatever fields programs behind an origin believe. The address of
// a client and the chain of X-Forwarded-For are in no key: a response that depends on them says so in Vary.
func TestFieldsOfARequestDoNotPoisonTheCache(t *testing.T) {
	e := newCachingEdge(t, func(m *configv1.SiteCache) { m.Key = &configv1.CacheKey{Headers: []string{"x-key"}} })
	e.respond(reflecting)
	for i, line := range []string{
		"X-Forwarded-Host: evil", "X-Forwarded-Server: evil", "X-Forwarded-Scheme: evil", "X-Forwarded-Proto: evil", "X-Forwarded-Port: 99evil",
		"X-Forwarded-Prefix: /evil", "X-Forwarded-Path: /evil", "X-Forwarded-Ssl: evil", "X-Forwarded-Protocol: evil", "X-Forwarded-Proto: evil", "Forwarded: host=evil",
		"X-Original-Url: /evil", "X-Rewrite-Url: /evil", "X-Original-Uri: /evil", "X-Request-Uri: /evil", "X-Original-Host: evil", "X-Host: evil",
		"X-Http-Host-Override: evil", "X-Http-Method-Override: EVIL", "X-Http-Method: EVIL", "X-Method-Override: EVIL", "X-Url-Scheme: evil", "X-Scheme: evil",
		"Front-End-Https: evil", "True-Client-Ip: evil", "X-Client-Ip: evil", "Client-Ip: evil", "X-Real-Ip: evil", "X-Remote-Addr: evil", "X-Originating-Ip: evil",
		"Base-Url: evil", "Proxy-Host: evil", "X-Key: evil", "X-Wap-Profile: evil", "X_Forwarded_Host: evil", "X-Svc-Any: evil", "Te: evil",
		"Range: bytes=evil", "Range: bytes=0-1", "If-Range: evil", "If-None-Match: evil", "If-Modified-Since: evil", "If-Match: evil", "If-Unmodified-Since: evil",
		"Connection: X-Key", "Connection: Host", "Connection: evil", "Proxy-Connection: evil", "Upgrade: evil", "Expect: evil", "X-Any: refuse-this", "X-Long: " + strings.Repeat("refuse-this", 15_000),
	} {
		target := fmt.Sprint("/p", i)
		first, _ := e.get("GET", target, line)
		e.settled()
		w, _ := e.get("GET", target)
		if w.Code != 200 || strings.Contains(strings.ToLower(w.Body.String()), "evil") {
			t.Errorf("%.60s: %d %q, after %d", line, w.Code, w.Body, first.Code)
		}
	}
	// With a part of the key that does not reach the origin.
	e.get("GET", "/hop", "X-Key: 1", "Connection: X-Key")
	if w, _ := e.get("GET", "/hop", "X-Key: 1"); !strings.Contains(w.Body.String(), "X-Key[1]") {
		t.Error("a field that the origin did not get is taken for one that it got:", w.Body)
	}
}

// What a request is to a cache and to its origin is the same.
func TestTargetsAndBodiesDoNotPoisonTheCache(t *testing.T) {
	e := newCachingEdge(t, func(*configv1.SiteCache) {})
	e.respond(reflecting)
	for i, spelling := range []string{
		"//p%d", "/./p%d", "/x/../p%d", "/%%70%d", "/p%d/", "/p%d%%2f", "/p%d/.", "/p%d;x", "/p%d%%00", "/p%d%%0d%%0ax", "/P%d", "/p%d?", "/p%d?x", "/p%d%%3fx", "/%%2e/p%d", "/p%d%%20", "/p%d\\", "/x%%2f..%%2fp%d",
	} {
		target, clean := fmt.Sprintf(spelling, i), fmt.Sprint("/p", i)
		e.get("GET", target)
		e.settled()
		if w, _ := e.get("GET", clean); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "GET a.com "+clean+" ") {
			t.Errorf("%s: %d %q", target, w.Code, w.Body)
		}
	}
	for i, change := range []func(r *http.Request){
		func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("evil")), 4 },
		func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("evil")), -1 },
		func(r *http.Request) { r.Host = "a.com:99" },
		func(r *http.Request) { r.Host = "A.COM." },
		func(r *http.Request) { r.Method = "get" },
		func(r *http.Request) { r.Method = "EVIL" },
		func(r *http.Request) { r.Method = "HEAD" },
	} {
		target := fmt.Sprint("/b", i)
		r := request("GET", "a.com", target)
		change(r)
		e.send(r)
		e.settled()
		if w, _ := e.get("GET", target); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "GET a.com "+target+" ") || strings.Contains(w.Body.String(), "evil") {
			t.Errorf("change %d: %d %q", i, w.Code, w.Body)
		}
	}
}

// Nothing is stored of an origin that fails, and nothing that the edge says for it, whatever statuses a rule lists.
func TestFailuresAreNotStored(t *testing.T) {
	e := newCachingEdge(t, respecting)
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}
	}
	const head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=900\r\n"
	for i, c := range []struct{ says, text string }{
		{"no response", ""},
		{"no HTTP", "garbage\r\n\r\n"},
		{"the header is cut", head},
		{"the body is cut", head + "Content-Length: 10\r\n\r\n01234"},
		{"a chunk is cut", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n012"},
		{"the last chunk is missing", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"},
		{"a chunk that is none", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\nx\r\n"},
		{"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n12"},
		{"a length that is none", head + "Content-Length: -1\r\n\r\n1"},
		{"an informational response alone", "HTTP/1.1 103 Early Hints\r\nCache-Control: max-age=900\r\n\r\n"},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"},
	} {
		target := fmt.Sprint("/s/", i)
		e.respond(write(c.text))
		e.get("GET", target)
		e.settled()
		e.respond(says("whole", "Cache-Control: max-age=900"))
		if w, word := e.get("GET", target); w.Code != 200 || word != "MISS" || w.Body.String() != "whole" {
			t.Errorf("%s: %s %d %q", c.says, word, w.Code, w.Body)
		}
	}
	e.respond(write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head + "Transfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n5\r\nwhole\r\n0\r\nX-End: 1\r\n\r\n"))
	e.get("GET", "/interim")
	e.settled()
	if w, word := e.get("GET", "/interim"); word != "HIT" || w.Body.String() != "whole" || w.Header().Get("Link") != "" || w.Header().Get("X-End") != "" || w.Header().Get("Trailer") != "" {
		t.Error("behind an informational response, before a trailer:", word, w.Body, w.Header())
	}
}
