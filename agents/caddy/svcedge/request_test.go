package svcedge

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
		if got := isReserved(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

func TestRequestID(t *testing.T) {
	for value, kept := range map[string]bool{
		"12345678": true, "a.b_c:d-E9": true, strings.Repeat("x", 128): true,
		"1234567": false, strings.Repeat("x", 129): false, "with space": false, "<script>alert": false, "": false, "line\nbreak": false,
	} {
		response := http.Header{}
		id := assignRequestID(response, http.Header{"X-Request-Id": {value}})
		if (id == value) != kept || response.Get("X-Request-Id") != id || !isRequestID(id) {
			t.Errorf("%q became %q", value, id)
		}
	}
	if id := assignRequestID(http.Header{}, http.Header{"X-Request-Id": {"12345678", "87654321"}}); len(id) != 32 {
		t.Errorf("two ids became %q", id)
	}
	if assignRequestID(http.Header{}, http.Header{}) == assignRequestID(http.Header{}, http.Header{}) {
		t.Error("two requests got the same id")
	}
}

func TestInternalHeadersAreRemoved(t *testing.T) {
	h := http.Header{"X-Svc-Site": {"a"}, "X-Svcx": {"b"}, "x-svc-raw": {"c"}, "X-Svc-": {"d"}, "Accept": {"e"}}
	for range 200 {
		h["X-Svc-"+strings.Repeat("a", len(h))] = []string{"x"}
	}
	strip(h)
	if len(h) != 2 || h["X-Svcx"] == nil || h["Accept"] == nil {
		t.Errorf("%v", h)
	}
}

func TestLoopToken(t *testing.T) {
	const token = "svc-0123456789abcdef"
	for value, want := range map[string]bool{
		token: true, "a, " + token: true, "a," + strings.ToUpper(token) + " ; x=1,b": true,
		"": false, "svc-0123456789abcde": false, token + "0": false, `"` + token + `"`: false, "x;" + token: false,
	} {
		if got := passedBefore([]string{"other", value}, token); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func TestRefusedMethods(t *testing.T) {
	for line, want := range map[string]bool{
		"GET /": false, "OPTIONS /": false, "OPTIONS *": true, "CONNECT a.com:443": true, "TRACE /": true, "PROPFIND /": false,
	} {
		method, target, _ := strings.Cut(line, " ")
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.RequestURI = method, target
		if got := refusedMethod(r); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// A target that another reader could take for another path than the edge does is none.
func TestRefusedTargets(t *testing.T) {
	for target, want := range map[string]bool{
		"/": false, "/a?b": false, "//a/b": false, "/a://b/c": false, "http://a.com": false, "HTTP://a.com/x?y": false, "https://a.com:8443/": false,
		"*": true, "x:y": true, "x:/y": true, "x:///y": true, "http:/y": true, "http:///y": true, "ftp://a.com/y": true,
		"x:/.well-known/acme-challenge/t?://a.com/admin": true,
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a.com\r\n\r\n")))
		if err != nil {
			t.Fatal(target, err)
		}
		if got := refusedTarget(r); got != want {
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
	if r := handshake(); !upgrades(r) || r.Header.Get("Upgrade") == "" {
		t.Fatal("a whole handshake was refused")
	}
	for name, spoil := range map[string]func(*http.Request){
		"POST":             func(r *http.Request) { r.Method = "POST" },
		"HTTP/1.0":         func(r *http.Request) { r.ProtoMinor = 0 },
		"HTTP/2":           func(r *http.Request) { r.ProtoMajor = 2 },
		"a body":           func(r *http.Request) { r.ContentLength = 5 },
		"a body unbounded": func(r *http.Request) { r.ContentLength = -1 },
		"h2c":              func(r *http.Request) { r.Header["Upgrade"] = []string{"h2c"} },
		"two protocols":    func(r *http.Request) { r.Header["Upgrade"] = []string{"websocket, h2c"} },
		"two lines":        func(r *http.Request) { r.Header["Upgrade"] = []string{"websocket", "h2c"} },
		"settings of h2":   func(r *http.Request) { r.Header["Http2-Settings"] = []string{"AAMAAABk"} },
		"no key":           func(r *http.Request) { delete(r.Header, "Sec-Websocket-Key") },
		"short key":        func(r *http.Request) { r.Header["Sec-Websocket-Key"] = []string{"c2hvcnQ="} },
		"another version":  func(r *http.Request) { r.Header["Sec-Websocket-Version"] = []string{"8"} },
		"no token":         func(r *http.Request) { r.Header["Connection"] = []string{"keep-alive"} },
	} {
		r := handshake()
		spoil(r)
		if upgrades(r) {
			t.Errorf("%s: still an upgrade", name)
		}
		if r.Header["Upgrade"] != nil || r.Header["Http2-Settings"] != nil || hasToken(r.Header["Connection"], "upgrade") || !hasToken(r.Header["Connection"], "keep-alive") {
			t.Errorf("%s: %v", name, r.Header)
		}
	}
}

// A path that reads as reserved after any decoding of dot segments is found, and nothing makes the check panic.
func FuzzReservedPrefix(f *testing.F) {
	for _, seed := range []string{"/.svc/x", "/a/../.svc/", "//.svc", `\..\.svc\`, "/.svc/.."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		reserved := isReserved(p)
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
		if len(stack) > 1 && stack[0] == ".svc" && !reserved {
			t.Fatalf("%q resolves under the prefix", p)
		}
	})
}
