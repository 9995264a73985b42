package pages

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"

	"edge.svc/caddy/exchange"
)

// Respond answers with the page of a code. HEAD gets the headers only.
func Respond(x *exchange.Exchange, status int, code string) *exchange.Answer {
	a := x.Respond(status)
	a.Code = code
	h := a.Header
	h[headerError] = []string{code}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	if line, ok := plain[code]; ok {
		h["Content-Type"] = plainType
		x.SetBytes(a, append(x.Page(), line...))
		return a
	}
	h["Content-Type"] = htmlType
	h["Content-Security-Policy"] = policy
	language := english
	if PrefersChinese(x.In.Header["Accept-Language"]) {
		language = chinese
	}
	x.SetBytes(a, appendPage(x.Page(), status, code, language, x.In.ID))
	return a
}

// Raw is a whole answer over HTTP/1.1, for who is answered before anything of a request was read. The connection ends
// with it.
func Raw(status int, code, requestID string) []byte {
	page := appendPage(nil, status, code, english, requestID)
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\n%s: %s\r\nX-Request-Id: %s\r\nCache-Control: %s\r\nX-Content-Type-Options: %s\r\nContent-Type: %s\r\nContent-Security-Policy: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), headerError, code, requestID, noStore[0], noSniff[0], htmlType[0], policy[0], len(page))
	return append([]byte(head), page...)
}

// RespondBusy answers a request that the node has no memory for. Over HTTP/1 the connection ends with it: the server would
// read the rest of the body first. Other requests of a shared connection go on.
func RespondBusy(x *exchange.Exchange) *exchange.Answer {
	if x.In.Major == 1 {
		x.CloseAfter()
	}
	x.Body.Refuse()
	return Respond(x, http.StatusServiceUnavailable, EdgeBusy)
}

// RespondToBody answers for a request body that cannot be read. A part of it may be left on the client's connection, which
// ends. A client that is gone gets no answer.
func RespondToBody(x *exchange.Exchange, err error) *exchange.Answer {
	if errors.Is(err, exchange.ErrNoMemory) {
		return RespondBusy(x)
	}
	x.CloseAfter()
	switch {
	case errors.Is(err, exchange.ErrBodyTooLarge):
		return Respond(x, http.StatusRequestEntityTooLarge, BodyTooLarge)
	case errors.Is(err, exchange.ErrBodySlow):
		return Respond(x, http.StatusRequestTimeout, BadRequest)
	case errors.Is(err, io.ErrUnexpectedEOF) || x.Context().Err() != nil:
		return x.Drop()
	default:
		return Respond(x, http.StatusBadRequest, BadRequest)
	}
}

// RespondBanned answers a banned client and ends its connection.
func RespondBanned(x *exchange.Exchange) *exchange.Answer {
	x.CloseAfter()
	return Respond(x, http.StatusForbidden, IPBanned)
}

// Values of headers, made once. Nobody changes them.
var (
	noStore   = []string{"no-store"}
	noSniff   = []string{"nosniff"}
	plainType = []string{"text/plain; charset=utf-8"}
	htmlType  = []string{"text/html; charset=utf-8"}
	policy    = []string{"default-src 'none'; style-src 'unsafe-inline'"}
)

type pageKey struct {
	status   int
	code     string
	language int
}

// page is a page around the place of the request id.
type page struct{ before, after string }

// The pages that requests meet most are put together once.
var pages = func() map[pageKey]page {
	made := map[pageKey]page{}
	for code, statuses := range map[string][]int{
		BadRequest: {400, 408, 417, 501, 505}, BodyTooLarge: {413}, IPBanned: {403}, InternalError: {500}, MethodNotAllowed: {405}, NoOrigin: {502},
		HTTPSRequired: {400}, NotFound: {404}, OriginBusy: {503}, OriginError: {502}, OriginTimeout: {504}, OriginUnreachable: {502}, PolicyDenied: {403, 429, 451, 503},
		Maintenance: {503}, PathAmbiguous: {400}, SiteDisabled: {503}, ChallengeUnavailable: {503}, PolicyUnavailable: {503}, TooLarge: {413}, HeaderTooLarge: {431},
		ClientCertRequired: {403}, EdgeBusy: {503}, URITooLong: {414}, UnknownHost: {404}, WAFBlocked: {403}, WAFBusy: {503}, WebSocketDisabled: {403},
	} {
		for _, status := range statuses {
			for language := range languages {
				made[pageKey{status, code, language}] = build(status, code, language)
			}
		}
	}
	return made
}()

func appendPage(b []byte, status int, code string, language int, requestID string) []byte {
	p, ok := pages[pageKey{status, code, language}]
	if !ok {
		p = build(status, code, language)
	}
	b = append(b, p.before...)
	b = append(b, html.EscapeString(requestID[:min(len(requestID), maxRequestIDBytes)])...)
	return append(b, p.after...)
}

const style = `:root{color-scheme:light dark;--b:#f6f7f9;--f:#1c2230;--m:#667085;--l:#d0d5dd;--e:#d92d20}` +
	`@media(prefers-color-scheme:dark){:root{--b:#10141c;--f:#e6e9ef;--m:#98a2b3;--l:#344054;--e:#f97066}}` +
	`body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--b);color:var(--f);` +
	`font:16px/1.6 system-ui,sans-serif}main{max-width:34rem;padding:2rem}h1{font-size:1.6rem;margin:.2em 0}` +
	`.s{color:var(--m);font-size:.9rem}ol{display:flex;list-style:none;padding:0;margin:2rem 0;gap:.5rem}` +
	`li{flex:1;text-align:center;border-top:3px solid var(--l);padding-top:.5rem}` +
	`li.e{border-color:var(--e);color:var(--e)}code{word-break:break-all}`

// The page of a banned client is sent to floods of them, so it is as small as it can be.
const smallStyle = `:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;margin:15vh auto;max-width:32rem;padding:0 1rem}`

var (
	langs     = [languages]string{"zh", "en"}
	idLabels  = [languages]string{"请求编号", "Request ID"}
	hops      = []string{hopVisitor, hopEdge, hopOrigin}
	hopLabels = map[string][languages]string{hopVisitor: {"访客", "Visitor"}, hopEdge: {"边缘节点", "Edge"}, hopOrigin: {"源站", "Origin"}}
)

func build(status int, code string, language int) page {
	t := textOf(status, code)
	var b strings.Builder
	css := style
	if t.hop == hopNone {
		css = smallStyle
	}
	fmt.Fprintf(&b, `<!doctype html><html lang="%s"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`+
		`<title>%d %s</title><style>%s</style><main><p class="s">%d</p><h1>%s</h1><p>%s</p><p>%s</p>`,
		langs[language], status, t.titles[language], css, status, t.titles[language], t.sentences[language], t.advice[language])
	if t.hop != hopNone {
		outcome, ok := outcomes[code]
		switch {
		case t.hop == hopVisitor:
			outcome = notAccepted
		case !ok, code == PolicyDenied && status == http.StatusServiceUnavailable:
			outcome = failed
		}
		b.WriteString("<ol>")
		for _, hop := range hops {
			label := hopLabels[hop][language]
			if hop == t.hop {
				fmt.Fprintf(&b, `<li class="e">%s: %s`, label, outcome[language])
			} else {
				b.WriteString("<li>" + label)
			}
		}
		b.WriteString("</ol>")
	}
	fmt.Fprintf(&b, `<p class="s">%s: <code>`, idLabels[language])
	return page{before: b.String(), after: "</code></p></main></html>\n"}
}

func textOf(status int, code string) text {
	if t, ok := statusTexts[code][status]; ok {
		return t
	}
	if t, ok := texts[code]; ok {
		return t
	}
	title := fmt.Sprint(status, " ", http.StatusText(status))
	return text{titles: [languages]string{title, title}, hop: hopEdge}
}

// PrefersChinese reports whether Accept-Language ranks Chinese above English, the other language there is. Without either,
// and in a tie that English leads, pages are English.
func PrefersChinese(values []string) bool {
	const enough = 512
	best, chineseBest := 0.0, false
	left := enough
	for _, value := range values {
		value = value[:min(len(value), left)]
		left -= len(value)
		for item := range strings.SplitSeq(value, ",") {
			tag, parameters, _ := strings.Cut(strings.TrimSpace(item), ";")
			language, _, _ := strings.Cut(tag, "-")
			isChinese := strings.EqualFold(language, "zh")
			if !isChinese && !strings.EqualFold(language, "en") {
				continue
			}
			q := 1.0
			if text, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
				parsed, err := strconv.ParseFloat(text, 64)
				if err != nil || !(parsed >= 0 && parsed <= 1) {
					continue
				}
				q = parsed
			}
			if q > best {
				best, chineseBest = q, isChinese
			}
		}
	}
	return chineseBest
}
