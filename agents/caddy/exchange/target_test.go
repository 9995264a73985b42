package exchange

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// reserved reports whether a decoded path is under the reserved prefix.
func reserved(p string) bool { return (&Target{Path: p, Canonical: CanonicalPath(p)}).Reserved() }

func TestReservedPrefix(t *testing.T) {
	for p, want := range map[string]bool{
		"/.svc/":              true,
		"/.svc/x":             true,
		"//.svc/x":            true,
		"/./.svc/x":           true,
		"/a/../.svc/x":        true,
		"/../.svc/x":          true,
		"/a/b/../../.svc/":    true,
		"/x/.svc/../../.svc/": true,
		`/\.svc/x`:            true,
		`\.svc\x`:             true,
		"/.svc":               false,
		"/.svcx/":             false,
		"/x/.svc/y":           false,
		"/.svc/../x":          true,
		"/a.svc/":             false,
		"/":                   false,
		"":                    false,
		"/.SVC/x":             false,
	} {
		if got := reserved(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

// A target that another reader could take for another path than the edge does is none.
func TestAmbiguousTargets(t *testing.T) {
	for target, want := range map[string]bool{
		"/": false, "/a?b": false, "//a/b": false, "/a://b/c": false, "http://a.com": false, "HTTP://a.com/x?y": false, "https://a.com:8443/": false,
		"*": true, "x:y": true, "x:/y": true, "x:///y": true, "http:/y": true, "http:///y": true, "ftp://a.com/y": true,
		"x:/.well-known/acme-challenge/t?://a.com/admin": true,
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a.com\r\n\r\n")))
		if err != nil {
			t.Fatal(target, err)
		}
		if got := readTarget(r).Ambiguous; got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}

func TestOnlyWholeWebSocketHandshakesKeepTheirUpgrade(t *testing.T) {
	handshake := func() *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header = http.Header{
			"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
		}
		return r
	}
	for name, change := range map[string]func(*http.Request){
		"as it is":         func(*http.Request) {},
		"last of a list":   func(r *http.Request) { r.Header["Upgrade"] = []string{"foo, websocket"} },
		"first of a list":  func(r *http.Request) { r.Header["Upgrade"] = []string{"WebSocket ,foo/1"} },
		"list of lines":    func(r *http.Request) { r.Header["Upgrade"] = []string{"foo", "websocket"} },
		"empty elements":   func(r *http.Request) { r.Header["Upgrade"] = []string{",, websocket,"} },
		"beside h2c":       func(r *http.Request) { r.Header["Upgrade"] = []string{"websocket, h2c"} },
		"with its setting": func(r *http.Request) { r.Header["Http2-Settings"] = []string{"AAMAAABk"} },
	} {
		r := handshake()
		change(r)
		if !isWebSocket(r) {
			t.Errorf("%s: a whole handshake was refused", name)
		}
	}
	for name, spoil := range map[string]func(*http.Request){
		"POST":             func(r *http.Request) { r.Method = "POST" },
		"HTTP/1.0":         func(r *http.Request) { r.ProtoMinor = 0 },
		"HTTP/2":           func(r *http.Request) { r.ProtoMajor = 2 },
		"a body":           func(r *http.Request) { r.ContentLength = 5 },
		"a body unbounded": func(r *http.Request) { r.ContentLength = -1 },
		"h2c":              func(r *http.Request) { r.Header["Upgrade"] = []string{"h2c"} },
		"a version of it":  func(r *http.Request) { r.Header["Upgrade"] = []string{"websocket/2"} },
		"a part of a name": func(r *http.Request) { r.Header["Upgrade"] = []string{"x-websocket, websockets, web socket"} },
		"no protocol":      func(r *http.Request) { r.Header["Upgrade"] = []string{""} },
		"no key":           func(r *http.Request) { delete(r.Header, "Sec-Websocket-Key") },
		"short key":        func(r *http.Request) { r.Header["Sec-Websocket-Key"] = []string{"c2hvcnQ="} },
		"another version":  func(r *http.Request) { r.Header["Sec-Websocket-Version"] = []string{"8"} },
		"no token":         func(r *http.Request) { r.Header["Connection"] = []string{"keep-alive"} },
	} {
		r := handshake()
		spoil(r)
		if isWebSocket(r) {
			t.Errorf("%s: still an upgrade", name)
		}
	}
}

// A path that reads as reserved after any decoding of dot segments is found, and nothing makes the check panic.
func FuzzReservedPrefix(f *testing.F) {
	for _, seed := range []string{"/.svc/x", "/a/../.svc/", "//.svc", `\..\.svc\`, "/.svc/.."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		found := reserved(p)
		var stack []string
		at := strings.Split(strings.ReplaceAll(p, `\`, "/"), "/")
		for _, segment := range at {
			switch segment {
			case "", ".":
			case "..":
				if len(stack) > 0 {
					stack = stack[:len(stack)-1]
				}
			default:
				stack = append(stack, segment)
			}
		}
		if len(stack) > 1 && stack[0] == ".svc" && !found {
			t.Fatalf("%q resolves under the prefix", p)
		}
	})
}
