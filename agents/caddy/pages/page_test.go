package pages

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

func answer(t *testing.T, method, accept string, status int, code, requestID string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", nil)
	if accept != "" {
		r.Header.Set("Accept-Language", accept)
	}
	exchangetest.Serve(w, r, func(x *exchange.Exchange) *exchange.Answer {
		x.In.ID = requestID
		return Respond(x, status, code)
	})
	return w
}

func TestPagesNeedNothingFromElsewhere(t *testing.T) {
	outside := regexp.MustCompile(`(?i)https?:|//|<script|<img|<link|url\(|@import|src=|href=`)
	for code := range texts {
		for _, language := range []string{"en", "zh-CN"} {
			w := answer(t, "GET", language, 503, code, "request-1")
			body := w.Body.String()
			if outside.MatchString(body) {
				t.Errorf("%s: %s", code, body)
			}
			if w.Header().Get("X-Svc-Error") != code || w.Header().Get("Cache-Control") != "no-store" ||
				w.Header().Get("Content-Length") != strconv.Itoa(len(body)) || !strings.Contains(body, "request-1") {
				t.Errorf("%s: %v\n%s", code, w.Header(), body)
			}
			if !strings.Contains(body, "color-scheme:light dark") {
				t.Errorf("%s has no dark form", code)
			}
			if (language == "zh-CN") != strings.Contains(body, `lang="zh"`) {
				t.Errorf("%s in %s: %s", code, language, body)
			}
		}
	}
}

func TestPageSaysWhatHappenedWhere(t *testing.T) {
	for _, c := range []struct {
		code     string
		status   int
		language string
		says     string
	}{
		{PolicyDenied, 403, "en", "Edge: request blocked"},
		{WAFBlocked, 403, "zh", "边缘节点: 已拦截请求"},
		{WebSocketDisabled, 403, "en", "Edge: request blocked"},
		{UnknownHost, 404, "en", "Edge: nothing to serve"},
		{SiteDisabled, 503, "en", "Edge: nothing to serve"},
		{URITooLong, 414, "en", "Visitor: request not accepted"},
		{InternalError, 500, "en", "Edge: failed"},
		{PolicyUnavailable, 503, "en", "Edge: failed"},
		{OriginTimeout, 504, "en", "Origin: failed"},
		{PolicyDenied, 429, "en", "Visitor: request not accepted"},
		{PolicyDenied, 503, "en", "Edge: failed"},
	} {
		body := answer(t, "GET", c.language, c.status, c.code, "request-1").Body.String()
		if !strings.Contains(body, `<li class="e">`+c.says) {
			t.Errorf("%s: %s", c.code, body)
		}
	}
	for code := range outcomes {
		if texts[code].hop != hopEdge {
			t.Errorf("%s: the page of %q cannot say it", code, texts[code].hop)
		}
	}
}

// A visitor reads what to do, and where others failed, that it is not the visitor's fault.
func TestPageSaysWhatToDo(t *testing.T) {
	for code, text := range texts {
		for language, fault := range map[string]string{"en": "This is not your fault", "zh": "这不是您的问题"} {
			body := answer(t, "GET", language, 503, code, "request-1").Body.String()
			for i, advice := range text.advice {
				if advice == "" || (language == langs[i]) != strings.Contains(body, "<p>"+advice+"</p>") && statusTexts[code] == nil {
					t.Errorf("%s in %s does not say %q: %s", code, language, advice, body)
				}
			}
			if text.hop == hopOrigin && !strings.Contains(body, fault) {
				t.Errorf("%s in %s: %s", code, language, body)
			}
		}
	}
	for code, byStatus := range statusTexts {
		for status, text := range byStatus {
			if body := answer(t, "GET", "en", status, code, "request-1").Body.String(); !strings.Contains(body, text.titles[english]) || !strings.Contains(body, text.advice[english]) {
				t.Errorf("%s %d: %s", code, status, body)
			}
		}
	}
}

func TestRequestIDIsEscaped(t *testing.T) {
	body := answer(t, "GET", "", 404, NotFound, `<b>"&`).Body.String()
	if strings.Contains(body, "<b>") || !strings.Contains(body, "&lt;b&gt;&#34;&amp;") {
		t.Errorf("%s", body)
	}
}

func TestBannedPageIsSmall(t *testing.T) {
	for _, language := range []string{"en", "zh"} {
		w := answer(t, "GET", language, 403, IPBanned, strings.Repeat("x", 128))
		if n := w.Body.Len(); n > 700 {
			t.Errorf("%s: %d bytes", language, n)
		}
	}
}

func TestHeadGetsTheHeaderOnly(t *testing.T) {
	w := answer(t, "HEAD", "", 404, UnknownHost, "request-1")
	if w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" || w.Code != 404 {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestAnswersToProgramsAreText(t *testing.T) {
	for code, status := range map[string]int{LoopDetected: 508, SNIHostMismatch: 421} {
		w := answer(t, "GET", "", status, code, "request-1")
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || strings.Contains(w.Body.String(), "<") {
			t.Errorf("%s: %v %q", code, w.Header(), w.Body)
		}
	}
}

func TestUnknownCodeHasAPage(t *testing.T) {
	if w := answer(t, "GET", "", 418, "some-code", "request-1"); w.Code != 418 || w.Header().Get("X-Svc-Error") != "some-code" ||
		!strings.Contains(w.Body.String(), http.StatusText(418)) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHeadersOfAnotherBodyAreRemoved(t *testing.T) {
	w := httptest.NewRecorder()
	for _, name := range []string{"Content-Encoding", "ETag", "Last-Modified", "Content-Range"} {
		w.Header().Set(name, "x")
	}
	exchangetest.Serve(w, httptest.NewRequest("GET", "/", nil), func(x *exchange.Exchange) *exchange.Answer {
		return Respond(x, 502, OriginUnreachable)
	})
	for _, name := range []string{"Content-Encoding", "ETag", "Last-Modified", "Content-Range"} {
		if w.Header().Get(name) != "" {
			t.Errorf("%s is left", name)
		}
	}
}

func TestLanguage(t *testing.T) {
	for value, want := range map[string]bool{
		"fr, zh;q=0.8, en;q=0.1": true, "fr, en;q=0.8, zh;q=0.1": false, "de": false, "de, zh;q=0.1": true, "fr, en, zh": false,
		"": false, "zh": true, "zh-CN,zh;q=0.9,en;q=0.8": true, "en-US,en;q=0.9,zh;q=0.8": false, "ZH-hant": true,
		"en;q=0.1, zh;q=0.2": true, "zh;q=0": false, "*": false, "zhx": false, "en,zh": false, "zh;q=nan": false,
		"zh;q=2, en": false, "fr;q=x, zh;q=0.5": true, strings.Repeat("a,", 500) + "zh": false,
	} {
		if got := PrefersChinese([]string{value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func FuzzLanguage(f *testing.F) {
	f.Add("zh-CN,zh;q=0.9", "en")
	f.Fuzz(func(t *testing.T, first, second string) { PrefersChinese([]string{first, second}) })
}
