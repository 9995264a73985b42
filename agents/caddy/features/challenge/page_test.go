package challenge

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

var addresses = regexp.MustCompile(`(?i)(?:\b(?:href|src|action)\s*=|\burl\()\s*["']?([^"'>\s)]+)`)

func TestPages(t *testing.T) {
	for kind, demand := range map[string]Demand{
		"js": {Level: JS}, "pow": {Level: Pow}, "captcha": {Level: Captcha}, "cookie302": {Level: Cookie302},
	} {
		for language, words := range map[string]string{"en": "This website", "zh-CN": "此网站"} {
			n := newNode(t)
			n.visit.RequestID = `id<"&>`
			n.headers.Set("Accept-Language", language)
			for range 3 {
				if kind == "cookie302" {
					n.admit("GET", `/x?<script>"&'`, demand)
				}
			}
			w, _ := n.admit("GET", `/x?<script>"&'`, demand)
			body := w.Body.String()
			name := kind + " " + language
			for header, want := range map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store, private", "X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "same-origin", "X-Svc-Challenge": kind, "Vary": "Accept-Encoding, Accept-Language, Sec-Fetch-Dest",
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s: %s is %q", name, header, got)
				}
			}
			for _, part := range []string{
				`<html lang="` + language + `">`, words, `content="noindex,nofollow"`, `content="width=device-width,initial-scale=1"`,
				`id&lt;&#34;&amp;&gt;`, "prefers-reduced-motion", "prefers-color-scheme:dark",
			} {
				if !strings.Contains(body, part) {
					t.Errorf("%s: without %q", name, part)
				}
			}
			if strings.Contains(body, "?<script>") || strings.Contains(body, "TODO") {
				t.Errorf("%s: what came with the request is on the page as it is", name)
			}
			for _, found := range addresses.FindAllStringSubmatch(body, -1) {
				if to := found[1]; !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "data:image/png;base64,") || strings.HasPrefix(to, "//") {
					t.Errorf("%s: the address %q", name, to)
				}
			}
			checkPolicy(t, name, w.Header().Get("Content-Security-Policy"), body)

			n.headers.Set("Accept-Encoding", "br, gzip;q=0.5")
			packed, _ := n.admit("GET", `/x?<script>"&'`, demand)
			size := packed.Body.Len()
			if packed.Header().Get("Content-Encoding") != "gzip" || size > 6000 {
				t.Errorf("%s: %v, %d bytes", name, packed.Header(), size)
			}
			t.Logf("%s: %d bytes, %d as they are", name, size, len(body))
			reader, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			// Checksum and size are checked on the way.
			unpacked, err := io.ReadAll(reader)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			hide := regexp.MustCompile(`(data-t|value|src)="[^"]*"`)
			if string(hide.ReplaceAll(unpacked, nil)) != string(hide.ReplaceAll([]byte(body), nil)) {
				t.Errorf("%s: the compressed page is another one", name)
			}
		}
	}
}

// checkPolicy holds a page against its own policy.
func checkPolicy(t *testing.T, name, policy, body string) {
	t.Helper()
	for _, unsafe := range []string{"unsafe", "*", "http://"} {
		if strings.Contains(policy, unsafe) {
			t.Errorf("%s: %s in %s", name, unsafe, policy)
		}
	}
	for _, part := range []string{"default-src 'none'", "base-uri 'none'", "form-action", "frame-ancestors"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%s: no %s in %s", name, part, policy)
		}
	}
	for _, element := range []string{"script", "style"} {
		for _, found := range regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(body, -1) {
			sum := sha256.Sum256([]byte(found[1]))
			if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
				t.Errorf("%s: the policy has not %s", name, want)
			}
		}
	}
	if regexp.MustCompile(` (on[a-z]+|style)="`).MatchString(body) {
		t.Errorf("%s: code or style in an attribute", name)
	}
}

func TestWhoGetsWhichAnswer(t *testing.T) {
	const pageText, lineText = "<!doctype html>", "A challenge has to be passed first"
	for _, c := range []struct {
		name, method string
		headers      map[string]string
		challenge    string
		body         string
	}{
		{"a browser", "GET", map[string]string{"Sec-Fetch-Dest": "document"}, "pow", pageText},
		{"a browser without these headers", "GET", nil, "pow", pageText},
		{"a frame", "GET", map[string]string{"Sec-Fetch-Dest": "iframe"}, "pow", pageText},
		{"fetch", "GET", map[string]string{"Sec-Fetch-Dest": "empty"}, "pow", lineText},
		{"an image", "GET", map[string]string{"Sec-Fetch-Dest": "image"}, "pow", lineText},
		{"a prefetch", "GET", map[string]string{"Sec-Purpose": "prefetch;prerender", "Sec-Fetch-Dest": "document"}, "pow", lineText},
		{"an older prefetch", "GET", map[string]string{"Purpose": "prefetch"}, "pow", lineText},
		{"an upgrade", "GET", map[string]string{
			"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		}, "pow", lineText},
		{"HEAD", "HEAD", nil, "pow", ""},
		{"HEAD by fetch", "HEAD", map[string]string{"Sec-Fetch-Dest": "empty"}, "pow", ""},
		{"POST", "POST", nil, "required", lineText},
		{"PUT", "PUT", nil, "required", lineText},
		{"a CORS preflight", "OPTIONS", map[string]string{"Origin": "https://a.test", "Access-Control-Request-Method": "GET"}, "required", lineText},
		{"an unknown method", "X", nil, "required", lineText},
	} {
		n := newNode(t)
		for name, value := range c.headers {
			n.headers.Set(name, value)
		}
		w, admitted := n.admit(c.method, "/", Demand{Level: Pow})
		if admitted || w.Code != http.StatusForbidden || w.Header().Get("X-Svc-Challenge") != c.challenge || w.Header().Get("X-Svc-Error") != "" ||
			w.Header().Get("Cache-Control") != "no-store, private" || !strings.HasPrefix(w.Body.String(), c.body) || c.body == "" && w.Body.Len() > 0 {
			t.Errorf("%s: %d %v %.60q", c.name, w.Code, w.Header(), w.Body)
		}
		if c.body == lineText && (w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || strings.Count(w.Body.String(), "\n") != 1) {
			t.Errorf("%s: %v %q", c.name, w.Header(), w.Body)
		}
	}
}

func TestLanguageOfThePage(t *testing.T) {
	for header, want := range map[string]string{
		"": "en", "und": "en", "zh": "zh-CN", "zh-TW,en;q=0.9": "zh-CN", "en,zh": "en", "zh;q=0.2,en;q=0.8": "en", "*": "en",
		strings.Repeat("x,", 4096) + "zh": "en", "zh," + strings.Repeat("en,", 4096): "zh-CN", "\xff\xfe;q=\x00": "en",
	} {
		n := newNode(t)
		n.headers.Set("Accept-Language", header)
		if w, _ := n.admit("GET", "/", Demand{Level: JS}); !strings.Contains(w.Body.String(), `<html lang="`+want+`"`) {
			t.Errorf("%.40q: not %s", header, want)
		}
	}
}

func TestEffortIsTold(t *testing.T) {
	if w, _ := newNode(t).admit("GET", "/", Demand{Level: JS}); !strings.Contains(w.Body.String(), "This takes less than a second.") {
		t.Error("js: nothing")
	}
	for bits, want := range map[uint8]string{8: "less than a second.", 20: "less than a second.", 22: "about 3 seconds", 26: "about a minute"} {
		n := newNode(t)
		n.visit.PowBits, n.visit.PowHighBits = bits, bits
		if w, _ := n.admit("GET", "/", Demand{Level: Pow}); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d bits: not %q", bits, want)
		}
		if w, _ := n.admit("GET", "/", Demand{Level: Captcha}); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d bits instead of an image: not %q", bits, want)
		}
	}
}

// Without an image the computation takes its place, and is counted.
func TestCaptchaWithoutAnImage(t *testing.T) {
	n := newNode(t)
	n.captchas.running.Store(true)
	w, _ := n.admit("GET", "/", Demand{Level: Captcha})
	if w.Header().Get("X-Svc-Challenge") != "pow" || n.Counters().CaptchaFallbacks != 1 {
		t.Fatalf("%v %+v", w.Header(), n.Counters())
	}
	token := tokenOf(t, w.Body.String())
	if w = n.post(map[string][]string{"t": {token}, "a": {n.solve(token)}}); !n.keep(w) || !n.passes(Captcha) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestAnAnswerLeavesRoomForItsForm(t *testing.T) {
	n := newNode(t)
	long := "/?" + strings.Repeat("%E4", 600)
	for target, want := range map[string]string{long: "/", "/?" + strings.Repeat("a", 2000): "/?" + strings.Repeat("a", 2000)} {
		w, _ := n.admit("GET", target, Demand{Level: Captcha})
		if !strings.Contains(w.Body.String(), `name="r" value="`+want+`"`) {
			t.Errorf("%.20s", target)
		}
	}
}

func TestWorkerScript(t *testing.T) {
	c := New(Options{})
	for _, method := range []string{"GET", "HEAD"} {
		for coding, want := range map[string]string{"": "", "gzip": "gzip", "gzip;q=0": "", "GZIP; q=0.1": "gzip", "br": "", "gzip;q=0.000": "", "x-gzip": ""} {
			r := httptest.NewRequest(method, WorkerPath, nil)
			r.Header.Set("Accept-Encoding", coding)
			w := httptest.NewRecorder()
			exchangetest.Serve(w, r, c.Worker)
			body := w.Body.Bytes()
			if want == "gzip" && method == "GET" {
				reader, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(reader); err != nil {
					t.Fatal(err)
				}
			}
			if method == "GET" && string(body) != worker || method == "HEAD" && len(body) > 0 || w.Header().Get("Content-Encoding") != want {
				t.Errorf("%s %q: %v, %d bytes", method, coding, w.Header(), len(body))
			}
			if w.Code != 200 || w.Header().Get("Content-Type") != "application/javascript" || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
				w.Header().Get("Content-Security-Policy") != "default-src 'none'; script-src 'wasm-unsafe-eval'" || w.Header().Get("Cache-Control") != "public, max-age=3600" {
				t.Errorf("%s: %d %v", method, w.Code, w.Header())
			}
		}
	}
	w, _ := newNode(t).admit("GET", "/", Demand{Level: Pow})
	if !strings.Contains(w.Body.String(), `data-w="/.svc/challenge/worker.js?v=`+workerHash+`"`) || len(workerHash) != 12 {
		t.Error("the page names another script")
	}
}

func TestCRCShift(t *testing.T) {
	for _, sizes := range [][2]int{{0, 0}, {1, 1}, {3, 1000}, {70_000, 65_537}} {
		s := newStitched([]string{strings.Repeat("a", sizes[0]), strings.Repeat("b", sizes[1])}, []slot{slotRequestID})
		packed := s.gzip(nil, &filling{requestID: "between"})
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, reader); err != nil {
			t.Errorf("%v: %v", sizes, err)
		}
	}
}

func FuzzRequestHeaders(f *testing.F) {
	f.Add("zh-CN,zh;q=0.9", "gzip, br", "__ew_pass=a; b=c", "document", "Mozilla/5.0")
	f.Add("und", "gzip;q=", ";;__ew_pass", "", "")
	f.Add("zh;q=nan,*;q=1e9", ";,;q=0,gzip;", "__ew_pass=v1.k1.", "empty", "\x00")
	n := newNode(f)
	f.Fuzz(func(t *testing.T, language, coding, cookie, dest, agent string) {
		n.headers = http.Header{
			"Accept-Language": {language}, "Accept-Encoding": {coding}, "Cookie": {cookie}, "Sec-Fetch-Dest": {dest}, "User-Agent": {agent},
		}
		for _, level := range []Level{Cookie302, JS, Pow} {
			w, admitted := n.admit("GET", "/", Demand{Level: level})
			if admitted {
				t.Fatal("let through")
			}
			if w.Header().Get("Content-Encoding") == "gzip" {
				reader, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, reader); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkPage(b *testing.B) {
	for name, demand := range demands {
		for _, coding := range []string{"", "gzip"} {
			b.Run(name+" "+coding, func(b *testing.B) {
				n := newNode(b)
				n.headers.Set("Accept-Encoding", coding)
				r := httptest.NewRequest("GET", "/some/path?with=query", nil)
				r.Header = n.headers
				w := &discard{header: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					exchangetest.Serve(w, r, func(x *exchange.Exchange) *exchange.Answer { return n.Admit(x, &n.visit, demand) })
				}
			})
		}
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
