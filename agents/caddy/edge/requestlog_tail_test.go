package edge

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/features/requestlog"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// tailed takes out the paths of watched requests as the agent does.
func (h *edge) tailed(t *testing.T, watches ...*nodev1.LogTailWatch) (paths []string, dropped uint64) {
	t.Helper()
	response := requestlog.Of(h.core).Tail(&edgev1.TailLogsRequest{Watches: watches})
	for _, encoded := range response.GetRows() {
		row := &nodev1.LogRow{}
		if err := proto.Unmarshal(encoded, row); err != nil {
			t.Fatal(err)
		}
		if row.GetSiteId() != "a" || row.GetSampleRate() != 10_000 {
			t.Errorf("%v", row)
		}
		paths = append(paths, row.GetPath())
	}
	for _, loss := range response.GetDropped() {
		dropped += loss.GetRows()
	}
	return paths, dropped
}

func watch(filters ...*nodev1.LogTailFilter) *nodev1.LogTailWatch {
	return &nodev1.LogTailWatch{SiteId: "a", Seconds: 10, RowsPerSecond: 200, Filters: filters}
}

// A watched request is shown whether the site logs or not, and nothing of it is stored.
func TestAWatchedRequestIsShownThoughItsSiteLogsNothing(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(1, "a.com")), edgetest.Entry("site", "b", edgetest.Site(1, "b.com")))
	h.send(request("GET", "a.com", "/before"))
	if paths, _ := h.tailed(t, watch()); len(paths) > 0 {
		t.Errorf("a watch begins with its first call, not with %v", paths)
	}
	h.send(request("GET", "a.com", "/one?secret=1"))
	h.send(request("GET", "b.com", "/other"))
	h.send(request("GET", "a.com", "/two"))
	if paths, dropped := h.tailed(t, watch()); !slices.Equal(paths, []string{"/one", "/two"}) || dropped > 0 {
		t.Errorf("%v, %d dropped", paths, dropped)
	}
	if paths, _ := h.tailed(t, watch()); len(paths) > 0 {
		t.Errorf("%v are shown twice", paths)
	}
	if rows, losses := h.logged(t); len(rows) > 0 || len(losses) > 0 {
		t.Errorf("stored %v, lost %v", rows, losses)
	}
	h.tailed(t)
	h.send(request("GET", "a.com", "/after"))
	if paths, _ := h.tailed(t, watch()); len(paths) > 0 {
		t.Errorf("%v were kept after the watch", paths)
	}
}

// A site has so many rows a second, and what is beyond is counted.
func TestWatchedRequestsBeyondTheRateAreCounted(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(1, "a.com")))
	slow := watch()
	slow.RowsPerSecond = 3
	h.tailed(t, slow)
	for i := range 20 {
		h.send(request("GET", "a.com", fmt.Sprint("/", i)))
	}
	paths, dropped := h.tailed(t, slow)
	if len(paths) < 3 || len(paths)+int(dropped) != 20 {
		t.Errorf("%d shown, %d dropped", len(paths), dropped)
	}
}

// Readers who look for something else have no rows of what others look for alone.
func TestWatchedRequestsAreThoseThatSomebodyLooksFor(t *testing.T) {
	h := newHandler(t, edgetest.Entry("site", "a", edgetest.Site(1, "a.com")))
	for name, c := range map[string]struct {
		filters []*nodev1.LogTailFilter
		want    []string
	}{
		"method":       {[]*nodev1.LogTailFilter{{Method: "POST"}}, []string{"/post"}},
		"path":         {[]*nodev1.LogTailFilter{{Path: "/po"}}, []string{"/post"}},
		"either":       {[]*nodev1.LogTailFilter{{Method: "POST"}, {Path: "/get"}}, []string{"/get", "/post"}},
		"both":         {[]*nodev1.LogTailFilter{{Method: "POST", Path: "/get"}}, nil},
		"agent":        {[]*nodev1.LogTailFilter{{UserAgent: "BOT"}}, []string{"/post"}},
		"status class": {[]*nodev1.LogTailFilter{{StatusClass: 5}}, []string{"/get", "/post"}},
		"status":       {[]*nodev1.LogTailFilter{{Status: 200}}, nil},
		"network":      {[]*nodev1.LogTailFilter{{Clients: []string{"192.0.2.0/24", "192.0.2.1"}}}, []string{"/get", "/post"}},
		"no address":   {[]*nodev1.LogTailFilter{{Clients: []string{"x"}}}, nil},
		"cache":        {[]*nodev1.LogTailFilter{{CacheStatus: "HIT"}}, nil},
		"refused":      {[]*nodev1.LogTailFilter{{BlockReason: "any"}}, nil},
		"country":      {[]*nodev1.LogTailFilter{{Country: "DE"}}, nil},
	} {
		h.tailed(t, watch(c.filters...))
		h.send(request("GET", "a.com", "/get"))
		post := request("POST", "a.com", "/post")
		post.Header.Set("User-Agent", "some bot")
		h.send(post)
		if paths, _ := h.tailed(t, watch(c.filters...)); !slices.Equal(paths, c.want) {
			t.Errorf("%s: %v", name, paths)
		}
	}
}
