package challenge

import (
	"net/http"
	"strings"
	"sync"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
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
)

// line is the answer to programs.
const line = "A challenge has to be passed first: open a page of this site in a browser.\n"

// refuse answers a request that cannot be challenged.
func refuse(x *exchange.Exchange, challenge string) *exchange.Answer {
	a := x.Respond(http.StatusForbidden)
	a.Header[headerChallenge] = []string{challenge}
	return sayLine(x, a)
}

func sayLine(x *exchange.Exchange, a *exchange.Answer) *exchange.Answer {
	a.Header["Cache-Control"] = noStore
	a.Header["Content-Type"] = plainType
	a.Header["X-Content-Type-Options"] = noSniff
	x.SetBytes(a, append(x.Page(), line...))
	return a
}

// respond is the page of a kind, or one line to those who would not look at a page.
func (c *Challenges) respond(x *exchange.Exchange, status int, kind string, f *filling) *exchange.Answer {
	a := x.Respond(status)
	h := a.Header
	h[headerChallenge] = kindNames[kind]
	h["Vary"] = varyPage
	if !wantsPage(x) {
		a.Status = http.StatusForbidden
		return sayLine(x, a)
	}
	f.language = english
	if pages.PrefersChinese(x.In.Header["Accept-Language"]) {
		f.language = chinese
	}
	page := pageForms[f.language][kind]()
	h["Cache-Control"] = noStore
	h["Content-Type"] = htmlType
	h["Content-Security-Policy"] = page.policy
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = sameOrigin
	if x.In.Method == http.MethodHead {
		return a
	}
	if acceptsGzip(x.In.Header["Accept-Encoding"]) {
		h["Content-Encoding"] = gzipCoding
		x.SetBytes(a, page.gzip(x.Page(), f))
	} else {
		x.SetBytes(a, page.plain(x.Page(), f))
	}
	return a
}

// Worker answers with the script that proofs of work run in.
func (c *Challenges) Worker(x *exchange.Exchange) *exchange.Answer {
	a := x.Respond(http.StatusOK)
	h := a.Header
	h["Content-Type"] = scriptType
	h["Cache-Control"] = workerCache
	h["Content-Security-Policy"] = workerPolicy
	h["X-Content-Type-Options"] = noSniff
	h["Vary"] = varyCoding
	a.Bytes = []byte(worker)
	if acceptsGzip(x.In.Header["Accept-Encoding"]) {
		h["Content-Encoding"] = gzipCoding
		a.Bytes = workerGzip()
	}
	return a
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
