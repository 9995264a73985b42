package sitepages

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/pages"
)

const (
	siteKind     = "site-pages"
	platformKind = "platform-pages"
	// Thirteen templates, and what is around them.
	maxSiteBody     = 1 << 20
	maxRedirectSize = 4096
	classes         = 100
)

func init() {
	core.ConfigureKind(siteKind, core.KindOptions{Features: []string{"error-pages-v1"}, MaxBody: maxSiteBody})
	core.SettingKind(platformKind, platform, compilePlatform)
	core.ConfigureKind(platformKind, core.KindOptions{Features: []string{"error-pages-v1"}, MaxBody: 3 * pages.MaxTemplateBytes})
}

// settings are the pages of a site, by status or class.
type settings struct {
	pages     map[int]*page
	intercept bool
}

// page is one of both.
type page struct {
	template *pages.Template
	// Status that the template is sent with; 0: that of the error.
	status   int
	redirect *redirect
}

var part = core.PartOf(siteKind, "pages", func(_ *core.Core, _ string, m *configv1.SitePages) (*settings, error) {
	s := &settings{pages: make(map[int]*page, len(m.GetPages())), intercept: m.GetInterceptOriginErrors()}
	for _, p := range m.GetPages() {
		status := int(p.GetStatus())
		if status != 4 && status != 5 && (status < 400 || status > 599) || s.pages[status] != nil {
			return nil, fmt.Errorf("status %d has two pages or can have none", status)
		}
		compiled, err := compilePage(p)
		if err != nil {
			return nil, fmt.Errorf("page of status %d: %w", status, err)
		}
		s.pages[status] = compiled
	}
	return s, nil
})

// of is the page of a status: its own, or its class's; nil without one.
func (s *settings) of(status int) *page {
	if own := s.pages[status]; own != nil {
		return own
	}
	return s.pages[status/classes]
}

var (
	errTemplate = fmt.Errorf("a template is UTF-8 of 1 to %d bytes", pages.MaxTemplateBytes)
	errStatus   = errors.New("a page is sent with a status from 200 to 599, and a redirect with its own")
)

func compilePage(m *configv1.ErrorPage) (*page, error) {
	status := int(m.GetResponseStatus())
	if status != 0 && (status < 200 || status > 599 || m.GetRedirectUrl() != "") {
		return nil, errStatus
	}
	if m.GetRedirectUrl() != "" {
		to, err := compileRedirect(m.GetRedirectUrl())
		return &page{redirect: to}, err
	}
	if m.GetTemplate() == "" {
		return nil, errTemplate
	}
	template, err := compileTemplate(m.GetTemplate())
	return &page{template: template, status: status}, err
}

// compileTemplate returns nil for an empty one.
func compileTemplate(text string) (*pages.Template, error) {
	if len(text) > pages.MaxTemplateBytes || !utf8.ValidString(text) {
		return nil, errTemplate
	}
	if text == "" {
		return nil, nil
	}
	return pages.ParseTemplate(text), nil
}

// redirect is an address with places of the status and the request id.
type redirect struct {
	url string
	// Path of an address on the site itself: a request for it is not redirected again.
	path   string
	values bool
}

func compileRedirect(url string) (*redirect, error) {
	if len(url) > maxRedirectSize || strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return nil, errors.New("a redirect needs an address without blanks, control characters and backslashes")
	}
	to := &redirect{url: url, values: strings.Contains(url, "{{")}
	switch {
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
	case strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//"):
		to.path, _, _ = strings.Cut(url, "?")
		to.path, _, _ = strings.Cut(to.path, "#")
	default:
		return nil, errors.New("a redirect leads to a path, or to an http or https address")
	}
	return to, nil
}

// platformPages are those of hosts and sites that nothing else has a page for; nil: the page of the edge.
type platformPages struct{ unknownHost, siteDisabled *pages.Template }

var platform = exchange.NewSetting(platformKind, new(platformPages))

func compilePlatform(m *configv1.PlatformPages) (*platformPages, error) {
	unknown, err := compileTemplate(m.GetUnknownHost())
	if err != nil {
		return nil, err
	}
	disabled, err := compileTemplate(m.GetSiteDisabled())
	return &platformPages{unknown, disabled}, err
}
