package svcchallenge

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"edge.svc/caddy/svcerrors"
)

const headerChallenge = "X-Svc-Challenge"

// Values of headers, made once. Nobody changes them.
var (
	challengeNames = func() (names [Captcha + 1][]string) {
		for level := range names {
			names[level] = []string{Level(level).String()}
		}
		return names
	}()
	kindNames = map[string][]string{
		typeCookie: challengeNames[Cookie302], typeJS: challengeNames[JS], typePow: challengeNames[Pow], typeCaptcha: challengeNames[Captcha],
	}
	noStore     = []string{"no-store, private"}
	noSniff     = []string{"nosniff"}
	sameOrigin  = []string{"same-origin"}
	htmlType    = []string{"text/html; charset=utf-8"}
	plainType   = []string{"text/plain; charset=utf-8"}
	scriptType  = []string{"application/javascript"}
	gzipCoding  = []string{"gzip"}
	varyPage    = []string{"Accept-Encoding, Accept-Language, Sec-Fetch-Dest"}
	varyCoding  = []string{"Accept-Encoding"}
	workerCache = []string{"public, max-age=3600"}
	// A worker has a policy of its own. It compiles what it wrote itself; the policies of pages allow no WebAssembly.
	workerPolicy = []string{"default-src 'none'; script-src 'wasm-unsafe-eval'"}
	zero         = []string{"0"}
)

// line is the answer to programs.
const line = "A challenge has to be passed first: open a page of this site in a browser.\n"

// refuse answers a request that cannot be challenged.
func refuse(w http.ResponseWriter, r *http.Request, challenge string) {
	h := w.Header()
	h[headerChallenge] = []string{challenge}
	writeLine(w, r)
}

func writeLine(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Cache-Control"] = noStore
	h["Content-Type"] = plainType
	h["X-Content-Type-Options"] = noSniff
	h["Content-Length"] = itoa(len(line))
	w.WriteHeader(http.StatusForbidden)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, line)
	}
}

// writeWhole writes a body with one call to the system where the connection offers that.
func writeWhole(w http.ResponseWriter, body []byte) {
	if whole, ok := w.(interface{ WriteWhole(p []byte) (int, error) }); ok {
		_, _ = whole.WriteWhole(body)
		return
	}
	_, _ = w.Write(body)
}

// buffers hold pages on their way out.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 16<<10)) }}

// respond writes the page of a kind, or one line to those who would not look at a page.
func (c *Challenges) respond(w http.ResponseWriter, r *http.Request, status int, kind string, f *filling) {
	h := w.Header()
	h[headerChallenge] = kindNames[kind]
	h["Vary"] = varyPage
	if !wantsPage(r) {
		writeLine(w, r)
		return
	}
	f.language = english
	if svcerrors.PrefersChinese(r.Header["Accept-Language"]) {
		f.language = chinese
	}
	page := pages[f.language][kind]()
	h["Cache-Control"] = noStore
	h["Content-Type"] = htmlType
	h["Content-Security-Policy"] = page.policy
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = sameOrigin
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return
	}
	buffer := buffers.Get().(*[]byte)
	body := (*buffer)[:0]
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		h["Content-Encoding"] = gzipCoding
		body = page.gzip(body, f)
	} else {
		body = page.plain(body, f)
	}
	h["Content-Length"] = itoa(len(body))
	w.WriteHeader(status)
	writeWhole(w, body)
	*buffer = body
	buffers.Put(buffer)
}

// ServeWorker answers with the script that proofs of work run in.
func (c *Challenges) ServeWorker(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = scriptType
	h["Cache-Control"] = workerCache
	h["Content-Security-Policy"] = workerPolicy
	h["X-Content-Type-Options"] = noSniff
	h["Vary"] = varyCoding
	body := []byte(worker)
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		h["Content-Encoding"] = gzipCoding
		body = workerGzip()
	}
	h["Content-Length"] = itoa(len(body))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

var workerGzip = sync.OnceValue(func() []byte {
	return newStitched([]string{worker}, nil).gzip(nil, nil)
})

// acceptsGzip reports whether Accept-Encoding names gzip and does not refuse it.
func acceptsGzip(values []string) bool {
	for _, value := range values {
		for rest, more := value, true; more; {
			var item string
			item, rest, more = strings.Cut(rest, ",")
			coding, parameters, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.Trim(coding, " \t"), "gzip") {
				quality := strings.Trim(parameters, " \t")
				return !strings.HasPrefix(quality, "q=0") || strings.Trim(quality[3:], ".0") != ""
			}
		}
	}
	return false
}
