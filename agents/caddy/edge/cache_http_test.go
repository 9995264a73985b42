package edge

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"edge.svc/caddy/features/cache"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/ruletest"
)

// step is a request through the edge, and what comes of it. Lines are headers, separated by " | "; {+9} in them is the date in
// nine seconds.
type step struct {
	// after is how many seconds go by before the request.
	after   int
	method  string
	request string
	// target replaces the path of the case.
	target string
	// status and header are what the origin returns if it is asked; no status is 200. Body is that of every response, by
	// default the number of the step.
	status int
	header string
	body   string
	// word is X-Cache, "" for any. got is the status that the client gets, 0 for any but one of an error, and gotBody the body.
	word    string
	got     int
	gotBody string
	// has are headers that the client gets; "Name: -" is one that it does not get. asks is the same of the request to the origin.
	has, asks string
}

type story struct {
	says  string
	steps []step
}

var dates = regexp.MustCompile(`\{([+-]\d+)\}`)

func (e *cachingEdge) headerOf(lines string) http.Header {
	h := http.Header{}
	if lines == "" {
		return h
	}
	at := e.now()
	lines = dates.ReplaceAllStringFunc(lines, func(text string) string {
		n, _ := strconv.Atoi(text[1 : len(text)-1])
		return at.Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
	})
	for line := range strings.SplitSeq(lines, " | ") {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// settled waits until all that came is stored.
func (e *cachingEdge) settled() {
	e.t.Helper()
	e.until("the responses are stored", func() bool {
		var b bytes.Buffer
		cache.Of(e.core).WriteMetrics(&b)
		return strings.Contains(b.String(), "svc_edge_cache_fills 0\n")
	})
}

// tell runs stories, each with a path of its own.
func (e *cachingEdge) tell(folder string, stories []story) {
	e.t.Helper()
	var mu sync.Mutex
	var now *step
	var body string
	var asked http.Header
	e.respond(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = r.Header.Clone()
		for name, values := range e.headerOf(now.header) {
			w.Header()[name] = values
		}
		if w.Header().Get("Date") == "-" {
			w.Header()["Date"] = nil
		}
		if now.status == 304 {
			w.WriteHeader(304)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(max(now.status, 200))
		_, _ = io.WriteString(w, body)
	})
	for i, s := range stories {
		path := folder + strconv.Itoa(i)
		for n := range s.steps {
			at := &s.steps[n]
			e.shift.Add(int64(at.after) * int64(time.Second))
			mu.Lock()
			now, asked = at, nil
			if body = at.body; body == "" {
				body = strconv.Itoa(n)
			}
			mu.Unlock()
			method, target := at.method, at.target
			if method == "" {
				method = "GET"
			}
			if target == "" {
				target = path
			}
			r := request(method, "a.com", target)
			for name, values := range e.headerOf(at.request) {
				r.Header[name] = values
			}
			w, aborted := e.send(r)
			e.settled()
			mu.Lock()
			header := asked
			mu.Unlock()
			if fault := at.compare(e, w, header); fault != "" || aborted {
				e.t.Errorf("%s, step %d: %s; got %d %v %q", s.says, n, fault, w.Code, w.Header(), w.Body)
				break
			}
		}
	}
}

func (s *step) compare(e *cachingEdge, w *httptest.ResponseRecorder, asked http.Header) string {
	switch {
	case s.word != "" && w.Header().Get("X-Cache") != s.word:
		return "want " + s.word
	case s.got != 0 && w.Code != s.got:
		return "want status " + strconv.Itoa(s.got)
	case s.gotBody != "" && w.Body.String() != strings.TrimPrefix(s.gotBody, "-"):
		return "want body " + s.gotBody
	case s.asks != "" && asked == nil:
		return "the origin was not asked"
	}
	for name, values := range e.headerOf(s.has) {
		if got := w.Header().Get(name); got != values[0] && !(values[0] == "-" && got == "") {
			return "want " + name + ": " + values[0]
		}
	}
	for name, values := range e.headerOf(s.asks) {
		if got := asked.Get(name); got != values[0] && !(values[0] == "-" && got == "") {
			return "the origin gets " + name + ": " + got
		}
	}
	return ""
}

// reuse makes stories of two requests: whether the response to the first is used for the second.
func reuse(rows []reused) (stories []story) {
	for _, r := range rows {
		stories = append(stories, story{r.says, []step{
			{status: r.status, header: r.header, request: r.first}, {after: r.after, status: r.status, header: r.header, request: r.second, word: r.word},
		}})
	}
	return stories
}

type reused struct {
	says   string
	header string
	after  int
	word   string
	status int
	first  string
	second string
}

func respecting(m *configv1.SiteCache) {
	statuses := func(priority uint32, codes ...uint32) *configv1.CacheRule {
		return always(func(r *configv1.CacheRule) {
			r.Priority, r.StatusCodes = priority, codes
			r.Condition = ruletest.Encode(ruletest.Call("starts_with", ruletest.Field("http.request.uri.path"), "/s/"))
		})
	}
	m.Rules = []*configv1.CacheRule{
		statuses(1, 200, 201, 202, 203, 204, 205, 299, 300, 301, 302, 303, 307, 308, 400, 404, 405),
		statuses(2, 410, 414, 418, 451, 499, 500, 501, 502, 503, 504, 505, 599),
		always(func(*configv1.CacheRule) {}),
	}
}
