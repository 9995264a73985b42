package prefetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func newCollected(t testing.TB, c *core.Core, most int) *collected {
	t.Helper()
	return &collected{component.Of(c), core.PlanOfHost(c.Tables(), "a.com"), most, nil, map[string]bool{}}
}

func newCore(t testing.TB) *core.Core {
	c := core.New(core.Options{StateDir: t.TempDir()})
	edgetest.Change(t, c, []*configv1.Entry{
		edgetest.Entry("site", "a", edgetest.Site(0, "a.com", "www.a.com")), edgetest.Entry("site", "b", edgetest.Site(0, "b.com")),
	})
	return c
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func urlset(locations ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for _, at := range locations {
		b.WriteString("<url><loc>" + at + "</loc><lastmod>2026-01-01</lastmod></url>")
	}
	return b.String() + "</urlset>"
}

func TestSitemaps(t *testing.T) {
	long := "https://a.com/" + strings.Repeat("x", 2048)
	type list = []string
	for name, c := range map[string]struct {
		text           string
		isChild        bool
		urls, sitemaps list
		err            error
	}{
		"URLs in their order, once": {text: urlset("https://a.com/2", "https://a.com/1", "https://a.com/2", "https://a.com/1#x"), urls: list{"https://a.com/2", "https://a.com/1"}},
		"white space":               {text: urlset("\n https://a.com/1 \n"), urls: list{"https://a.com/1"}},
		"entities of XML itself":    {text: urlset("https://a.com/?a=1&amp;b=2"), urls: list{"https://a.com/?a=1&b=2"}},
		"CDATA":                     {text: urlset("<![CDATA[https://a.com/?a=1&b=2]]>"), urls: list{"https://a.com/?a=1&b=2"}},
		"other hosts of the site":   {text: urlset("http://www.A.com:80/1"), urls: list{"http://www.a.com/1"}},
		"hosts of others":           {text: urlset("https://b.com/1", "https://c.com/", "ftp://a.com/", "/1", "https://u:p@a.com/", "javascript:x"), urls: nil},
		"a long URL":                {text: urlset(long, "https://a.com/1"), urls: list{"https://a.com/1"}},
		"as many as are wanted":     {text: urlset("https://a.com/1", "https://a.com/2", "https://a.com/3", "https://a.com/4", "https://a.com/5"), urls: list{"https://a.com/1", "https://a.com/2", "https://a.com/3", "https://a.com/4"}, err: errEnough},
		"gzip":                      {text: packed(urlset("https://a.com/1")), urls: list{"https://a.com/1"}},
		"prefixes": {text: `<s:urlset xmlns:s="x"><s:url><s:loc>https://a.com/1</s:loc><i:image xmlns:i="y"><i:loc>https://a.com/i</i:loc></i:image></s:url></s:urlset>`,
			urls: list{"https://a.com/1"}},
		"an index":             {text: `<sitemapindex><sitemap><loc>https://a.com/1.xml</loc></sitemap></sitemapindex>`, sitemaps: list{"https://a.com/1.xml"}},
		"an index in an index": {text: `<sitemapindex><sitemap><loc>https://a.com/1.xml</loc></sitemap></sitemapindex>`, isChild: true, err: errInvalid},
		"no URL":               {text: urlset()},
		"nothing":              {text: "", err: errInvalid},
		"HTML":                 {text: "<!DOCTYPE html><html></html>", err: errInvalid},
		"a document type":      {text: `<!DOCTYPE urlset [<!ENTITY a "https://a.com/1">]>` + urlset("&a;"), err: errInvalid},
		"an unknown entity":    {text: urlset("&a;"), err: errInvalid},
		"a torn end":           {text: strings.TrimSuffix(urlset("https://a.com/1"), "</urlset>"), urls: list{"https://a.com/1"}, err: errInvalid},
		"a second root":        {text: urlset() + urlset(), err: errInvalid},
		"elements that cross":  {text: "<urlset><url><loc>https://a.com/1</url></loc></urlset>", err: errInvalid},
		"too deep":             {text: "<urlset>" + strings.Repeat("<a>", 1000), err: errInvalid},
		"a large token":        {text: urlset(strings.Repeat("x", 1<<20)), err: errInvalid},
		"another charset":      {text: `<?xml version="1.0" encoding="utf-16"?><urlset/>`, err: errInvalid},
		"gzip of a bomb":       {text: packed("<urlset>" + strings.Repeat("<url></url>", maxSitemapBytes/11+1)), err: errTooLarge},
		"torn gzip":            {text: packed(urlset("https://a.com/1"))[:30], err: errInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := newCore(t)
			pages, sitemaps := newCollected(t, c1, 4), newCollected(t, c1, maxSitemaps)
			wanted := sitemaps
			if c.isChild {
				wanted = nil
			}
			err := parse(strings.NewReader(c.text), pages, wanted)
			if !errors.Is(err, c.err) || !slices.Equal(pages.urls, c.urls) || !slices.Equal(sitemaps.urls, c.sitemaps) {
				t.Errorf("%v %q %q", err, pages.urls, sitemaps.urls)
			}
		})
	}
}

func TestASitemapOfTooManyBytes(t *testing.T) {
	c := newCore(t)
	from := strings.NewReader("<urlset>" + strings.Repeat("<url></url>", maxSitemapBytes/11+1))
	if err := parse(from, newCollected(t, c, 4), nil); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

// Whatever comes: the reader ends, and has no URL that is not of the site, is too long, or came twice.
func FuzzSitemap(f *testing.F) {
	f.Add([]byte(urlset("https://a.com/1", "https://b.com/")))
	f.Add([]byte(packed(urlset("https://a.com/1"))))
	f.Add([]byte(`<sitemapindex><sitemap><loc>https://a.com/1.xml</loc></sitemap></sitemapindex>`))
	f.Add([]byte("<!DOCTYPE a [<!ENTITY b \"c\">]><urlset>&b;</urlset>"))
	c := newCore(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		pages, sitemaps := newCollected(t, c, 10), newCollected(t, c, 10)
		err := parse(bytes.NewReader(text), pages, sitemaps)
		if err != nil && !errors.Is(err, errInvalid) && !errors.Is(err, errTooLarge) && !errors.Is(err, errEnough) {
			t.Error(err)
		}
		for _, list := range []*collected{pages, sitemaps} {
			if len(list.urls) > list.most {
				t.Error(len(list.urls))
			}
			seen := map[string]bool{}
			for _, at := range list.urls {
				_, plan, reason := list.fetcher.find(at)
				if reason != "" || plan.SiteID != "a" || len(at) > maxURLBytes || seen[at] {
					t.Errorf("%q %s", at, reason)
				}
				seen[at] = true
			}
		}
	})
}
