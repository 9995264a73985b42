package rules

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/pmap"
	"edge.svc/caddy/pages"
)

const (
	maxRedirects   = 5000
	maxRedirectIDs = 256
	maxSource      = 512
	maxBulkTarget  = 1024
	// As the console has it: all redirects of a site at their largest, because nothing keeps them from falling into one part.
	maxBulkBody = maxRedirects * (maxSource + maxBulkTarget + 16)
)

// bulk has the redirects of all sites that have some, by the id of the site.
type bulk struct {
	sites pmap.Map[sources]
}

// sources are the redirects of a site by what they redirect: a path, or a host with one.
type sources struct{ pmap.Map[*bulkRedirect] }

// of is the redirects of a site.
func (b *bulk) of(site string) (s sources) {
	if b != nil {
		s, _ = b.sites.Get(site)
	}
	return s
}

// bulkRedirect is where a source leads.
type bulkRedirect struct {
	target   string
	status   int
	preserve bool
}

// chunk is the redirects of one entry by their sources.
type chunk map[string]*bulkRedirect

var (
	bulkRedirects = exchange.NewSetting[*bulk]("bulk-redirects", nil)
	// The entries by their ids.
	chunks = core.NewWriterState(func() *map[string]chunk { return &map[string]chunk{} })

	errSource = errors.New("the source must be a canonical path, or a host with one")
	errTarget = errors.New("the target must be a path or an http(s) URL")
)

func init() {
	core.RegisterKind(core.Kind{
		Name: "bulk-redirects", Features: []string{"rules-v2"}, MaxBody: maxBulkBody, Compile: compileBulk, Remove: removeBulk,
	})
}

// compileBulk reads a part of the redirects of a site. A change of one redirect changes its place in the map of the site,
// and no other.
func compileBulk(_ *core.Core, id string, body []byte) (core.Change, error) {
	var message configv1.BulkRedirects
	if err := proto.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("the body holds no valid redirects: %w", err)
	}
	site, number, _ := strings.Cut(id, "/")
	if n, err := strconv.Atoi(number); err != nil || n < 0 || n >= maxRedirectIDs || strconv.Itoa(n) != number || site == "" || site != message.GetSiteId() {
		return nil, fmt.Errorf("redirects %q do not belong to site %q", id, message.GetSiteId())
	}
	if len(message.GetRedirects()) > maxRedirects {
		return nil, fmt.Errorf("the entry has %d redirects; the maximum is %d", len(message.GetRedirects()), maxRedirects)
	}
	next := make(chunk, len(message.GetRedirects()))
	for _, m := range message.GetRedirects() {
		err := checkRedirect(m)
		if err == nil && next[m.GetSource()] != nil {
			err = errors.New("the source is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("redirect from %.200q: %w", m.GetSource(), err)
		}
		next[m.GetSource()] = &bulkRedirect{m.GetTarget(), int(m.GetStatus()), m.GetPreserveQuery()}
	}
	return func(e *core.Edit) { putChunk(e, site, id, next) }, nil
}

func checkRedirect(m *configv1.BulkRedirect) error {
	source := m.GetSource()
	slash := strings.IndexByte(source, '/')
	if slash < 0 || len(source) > maxSource || exchange.CanonicalPath(source[slash:]) != source[slash:] {
		return errSource
	}
	if host, kind := core.NormalizeHost(source[:slash]); slash > 0 && (kind == core.HostInvalid || host != source[:slash]) {
		return errSource
	}
	if len(m.GetTarget()) > maxBulkTarget || !expr.ForRedirect.Accepts(m.GetTarget()) {
		return errTarget
	}
	return oneOf("status", m.GetStatus(), 301, 302, 307, 308)
}

func removeBulk(e *core.Edit, id string) {
	site, _, _ := strings.Cut(id, "/")
	putChunk(e, site, id, nil)
}

// putChunk puts an entry in the place of the one before, in the map of its site.
func putChunk(e *core.Edit, site, id string, next chunk) {
	known := *chunks.Of(e)
	before := known[id]
	var sites pmap.Map[sources]
	if now := bulkRedirects.Of(e.Tables); now != nil {
		sites = now.sites
	}
	own, _ := sites.Get(site)
	for source, was := range before {
		// Another entry may have taken it over.
		if now, _ := own.Get(source); next[source] == nil && now == was {
			own.Map = own.Delete(e.Owner(), source)
		}
	}
	for source, to := range next {
		if was := before[source]; was != nil && *was == *to {
			if now, _ := own.Get(source); now == was {
				next[source] = was
				continue
			}
		}
		own.Map = own.Set(e.Owner(), source, to)
	}
	if len(next) > 0 {
		known[id] = next
	} else {
		delete(known, id)
	}
	if own.Len() > 0 {
		sites = sites.Set(e.Owner(), site, own)
	} else {
		sites = sites.Delete(e.Owner(), site)
	}
	if sites.Len() > 0 {
		bulkRedirects.Set(e.Tables, &bulk{sites})
	} else {
		bulkRedirects.Reset(e.Tables)
	}
}

// find is the redirect of what the client asked for: that of the host and path, else that of the path.
func (s sources) find(host, path string) *bulkRedirect {
	if len(path) > maxSource {
		return nil
	}
	if len(host)+len(path) <= maxSource {
		var room [maxSource]byte
		n := copy(room[:], host)
		n += copy(room[n:], path)
		if to, ok := s.Get(unsafe.String(&room[0], n)); ok {
			return to
		}
	}
	to, _ := s.Get(path)
	return to
}

// redirectInBulk looks at what the client asked for, whatever rules made of it.
func (q *request) redirectInBulk(own sources) (ended bool) {
	if own.Len() == 0 {
		return false
	}
	in := &q.x.In
	found := own.find(in.Host, in.Target.Canonical)
	if found == nil {
		return false
	}
	query := queryEdit{preserve: found.preserve}
	to, why := query.location(q, found.target, in.Target.Query)
	if why != "" {
		q.end(outcome{status: http.StatusServiceUnavailable, code: pages.PolicyUnavailable})
		return true
	}
	q.end(outcome{status: found.status, location: to})
	return true
}
