package prefetch

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	sitemapTime     = 30 * time.Second
	maxSitemapBytes = 50 << 20
	maxTokenBytes   = 64 << 10
	// Elements of a sitemap are three deep.
	maxDepth = 16
	// Sitemaps that an index may name.
	maxSitemaps = 1000
	// Where the task does not say.
	usualURLs = 1000
)

var (
	errTooLarge = errors.New("the sitemap is too large")
	errInvalid  = errors.New("this is no sitemap")
	errStatus   = errors.New("the sitemap was not sent")
	errEnough   = errors.New("there are enough URLs")
)

// collected has the URLs of a site, in their order, each once.
type collected struct {
	fetcher *Fetcher
	plan    *exchange.Plan
	most    int
	urls    []string
	known   map[string]bool
}

// add takes a URL if it is of the site. It reports whether there is room for more.
func (c *collected) add(text string) (more bool) {
	u, plan, reason := c.fetcher.find(text)
	if reason == "" && plan.SiteID == c.plan.SiteID {
		u.Fragment, u.RawFragment = "", ""
		if at := u.String(); len(at) <= maxURLBytes && !c.known[at] {
			c.known[at] = true
			c.urls = append(c.urls, at)
		}
	}
	return len(c.urls) < c.most
}

// readSitemap returns the URLs of a sitemap, and of those that it names; with the first failure.
func (f *Fetcher) readSitemap(ctx context.Context, text string, most int) (urls []string, failed *failure) {
	if most <= 0 {
		most = usualURLs
	}
	u, plan, reason := f.find(text)
	if reason != "" {
		return nil, &failure{url: text, reason: reason}
	}
	pages := &collected{f, plan, most, nil, map[string]bool{}}
	sitemaps := &collected{f, plan, maxSitemaps, nil, map[string]bool{}}
	if failed = f.readDocument(ctx, u, pages, sitemaps); failed != nil {
		failed.url = text
	}
	for _, child := range sitemaps.urls {
		if len(pages.urls) >= most || ctx.Err() != nil {
			break
		}
		u, _, reason := f.find(child)
		if reason != "" {
			continue
		}
		if bad := f.readDocument(ctx, u, pages, nil); bad != nil && failed == nil {
			bad.url, failed = child, bad
		}
	}
	return pages.urls, failed
}

// readDocument reads one document. Without sitemaps it may not be an index.
func (f *Fetcher) readDocument(ctx context.Context, u *url.URL, pages, sitemaps *collected) *failure {
	ctx, cancel := context.WithTimeout(ctx, sitemapTime)
	defer cancel()
	if !f.begin(ctx) {
		return &failure{reason: reasonTimeout}
	}
	defer f.end()
	if u.Scheme == "http" && f.covers(pages.plan, u.Hostname()) {
		secure := *u
		secure.Scheme = "https"
		u = &secure
	}
	reader, pipe := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := parse(reader, pages, sitemaps)
		// The rest is not wanted.
		reader.CloseWithError(errEnough)
		read <- err
	}()
	failed := f.ask(ctx, u, desktopAgent, &document{pipe: pipe})
	pipe.Close()
	err := <-read
	switch {
	case failed != nil && failed.reason != reasonOther:
		return failed.of("")
	case errors.Is(err, errTooLarge):
		return &failure{reason: reasonTooLarge}
	case err != nil && !errors.Is(err, errEnough):
		return &failure{reason: reasonInvalid}
	case failed != nil && err == nil && !isEnough(pages):
		return failed
	}
	return nil
}

func isEnough(c *collected) bool { return len(c.urls) >= c.most }

// document hands the body of a sitemap to its reader.
type document struct{ pipe *io.PipeWriter }

func (d *document) begin(status int, h http.Header) error {
	// What the origin packed for the way is unpacked by its first bytes, as is a file that is packed itself.
	if status != http.StatusOK {
		d.pipe.CloseWithError(errStatus)
		return errStatus
	}
	return nil
}

func (d *document) Write(p []byte) (int, error) { return d.pipe.Write(p) }

// limited fails where more is read than a sitemap may have.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (n int, err error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err = l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// source bounds the size of one token, which the decoder keeps in memory.
type source struct {
	from  io.Reader
	token int
}

func (s *source) Read(p []byte) (n int, err error) {
	if s.token > maxTokenBytes {
		return 0, errInvalid
	}
	n, err = s.from.Read(p)
	s.token += n
	return n, err
}

// parse reads a sitemap, or an index where sitemaps are wanted. Names of any namespace are taken.
func parse(from io.Reader, pages, sitemaps *collected) error {
	packed := bufio.NewReader(&limited{from, maxSitemapBytes + 1})
	var plain io.Reader = packed
	if magic, _ := packed.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return errInvalid
		}
		plain = &limited{unpacked, maxSitemapBytes + 1}
	}
	source := &source{from: plain}
	decoder := xml.NewDecoder(source)
	decoder.CharsetReader = func(name string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(name, "us-ascii") {
			return input, nil
		}
		return nil, errInvalid
	}
	err := parseTokens(decoder, source, pages, sitemaps)
	if err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errEnough) {
		return errInvalid
	}
	return err
}

func parseTokens(decoder *xml.Decoder, source *source, pages, sitemaps *collected) error {
	var (
		depth   int
		names   [maxDepth]string
		text    strings.Builder
		isLoc   bool
		to      *collected
		element string
	)
	for {
		token, err := decoder.RawToken()
		switch {
		case err == io.EOF && depth == 0 && to != nil:
			return nil
		case err != nil:
			return orTooLarge(err)
		}
		source.token = 0
		switch t := token.(type) {
		case xml.Directive:
			// Entities are declared there.
			return errInvalid
		case xml.StartElement:
			if depth == maxDepth || depth == 0 && to != nil {
				return errInvalid
			}
			names[depth] = t.Name.Local
			depth++
			if depth == 1 {
				switch t.Name.Local {
				case "urlset":
					to, element = pages, "url"
				case "sitemapindex":
					to, element = sitemaps, "sitemap"
				}
				if to == nil {
					return errInvalid
				}
			}
			isLoc = depth == 3 && names[1] == element && t.Name.Local == "loc"
			text.Reset()
		case xml.CharData:
			if isLoc && text.Len() <= maxURLBytes {
				text.Write(t[:min(len(t), maxURLBytes+1)])
			}
		case xml.EndElement:
			if depth == 0 || names[depth-1] != t.Name.Local {
				return errInvalid
			}
			depth--
			if isLoc {
				isLoc = false
				if !to.add(strings.TrimSpace(text.String())) {
					return errEnough
				}
			}
		}
	}
}

func orTooLarge(err error) error {
	if errors.Is(err, errTooLarge) {
		return errTooLarge
	}
	return errInvalid
}
