package core

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	"edge.svc/caddy/internal/edgetest"
)

func newCore(t testing.TB) *Core {
	t.Helper()
	return New(Options{StateDir: t.TempDir(), Values: map[string]any{"ban_capacity": 100, "ban_max_mib": 1}})
}

// change applies entries and deletes to whatever the core holds.
func change(t testing.TB, c *Core, upserts []*configv1.Entry, deletes ...*configv1.EntryKey) {
	t.Helper()
	base := c.Status().Position
	if _, _, err := c.Apply(base, edgetest.Position(base.GetRevision()+1), upserts, deletes); err != nil {
		t.Fatal(err)
	}
}

func siteEntry(id string, createdAtMs int64, domains ...string) *configv1.Entry {
	site := edgetest.Site(0, domains...)
	site.CreatedAtMs = createdAtMs
	return edgetest.Entry("site", id, site)
}

func hostOwner(c *Core, host string) string {
	if site := PlanOfHost(c.Tables(), host); site != nil {
		return site.SiteID
	}
	return ""
}

func TestPrecedenceOfDomainForms(t *testing.T) {
	c := newCore(t)
	change(t, c, []*configv1.Entry{
		siteEntry("exact", 50, "www.a.com", "a.com"),
		siteEntry("wildcard", 40, "*.a.com"),
		siteEntry("suffix-short", 30, ".com"),
		siteEntry("suffix-long", 20, ".a.com", ".b.a.com"),
		siteEntry("pattern-new", 10, `~.*\.net`, `~x[0-9]+\.org`),
		siteEntry("pattern-old", 5, `~m.*\.net`, `~[a-z]+`),
	})
	for host, want := range map[string]string{
		"www.a.com":   "exact",
		"a.com":       "exact",
		"img.a.com":   "wildcard",
		"x.img.a.com": "suffix-long",
		"x.b.a.com":   "suffix-long",
		"b.a.com":     "wildcard",
		"other.com":   "suffix-short",
		"com":         "pattern-old",
		"mail.net":    "pattern-old",
		"news.net":    "pattern-new",
		"x12.org":     "pattern-new",
		"ax12.org":    "",
		"x12.org.uk":  "",
		"localhost":   "pattern-old",
		"192.0.2.1":   "",
	} {
		if got := hostOwner(c, host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

// Finding a site by the index gives what trying every domain in turn gives, after any history of changes; the history
// written to a journal and read again gives the same.
func TestHostTableAgainstEveryDomainInTurn(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	labels := []string{"a", "b", "www", "x1"}
	tops := []string{"com", "net"}
	host := func() string {
		parts := []string{}
		for range 1 + random.IntN(3) {
			parts = append(parts, labels[random.IntN(len(labels))])
		}
		return strings.Join(append(parts, tops[random.IntN(len(tops))]), ".")
	}
	domain := func() string {
		switch random.IntN(5) {
		case 0:
			return "*." + host()
		case 1:
			return "." + host()
		case 2:
			return []string{`~[a-z]+\.com`, `~w.*`, `~.*\.b\.net`, `~(a|b)\.[a-z0-9]+\.(com|net)`, `~x[0-9]\.a\.com`, `~(?:www)?.*`}[random.IntN(6)]
		}
		return host()
	}
	c := newCore(t)
	live := map[string]*configv1.Site{}
	journal := slices.Clone(edgetest.Encode(edgetest.Header("node")))
	for range 300 {
		var upserts []*configv1.Entry
		var deletes []*configv1.EntryKey
		for range 1 + random.IntN(3) {
			id := fmt.Sprint("site-", random.IntN(12))
			if slices.ContainsFunc(upserts, func(e *configv1.Entry) bool { return e.GetId() == id }) ||
				slices.ContainsFunc(deletes, func(k *configv1.EntryKey) bool { return k.GetId() == id }) {
				continue
			}
			if live[id] != nil && random.IntN(3) == 0 {
				deletes = append(deletes, edgetest.Key("site", id))
				delete(live, id)
				continue
			}
			site := edgetest.Site(0)
			site.CreatedAtMs = int64(len(id)*10 + int(id[5]))
			for range random.IntN(4) {
				site.Domains = append(site.Domains, edgetest.Domain(domain()))
			}
			live[id] = site
			upserts = append(upserts, edgetest.Entry("site", id, site))
		}
		change(t, c, upserts, deletes...)
		journal = append(journal, edgetest.Encode(edgetest.Config(c.Status().Position.GetRevision(), upserts, deletes...))...)
		for range 20 {
			name := host()
			if got, want := hostOwner(c, name), slowOwner(live, name); got != want {
				t.Fatalf("%s: got %q, want %q of %v", name, got, want, live)
			}
		}
	}
	if len(c.Status().Failed) > 0 {
		t.Fatal(c.Status().Failed)
	}
	writeFile(t, filepath.Join(c.stateDir, configJournal), journal)
	if _, _, err := c.ReloadConfig(); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		name := host()
		if got, want := hostOwner(c, name), slowOwner(live, name); got != want {
			t.Fatalf("%s after the reload: got %q, want %q", name, got, want)
		}
	}
	for id := range live {
		change(t, c, nil, edgetest.Key("site", id))
	}
	names := namesOf(c.Tables())
	if n := names.ids.Len() + names.exact.Len() + names.wildcard.Len() + names.suffix.Len() + names.patterns.size + len(c.state.contested); n != 0 {
		t.Errorf("%d names are left of no site", n)
	}
}

// slowOwner tries every domain of every site.
func slowOwner(sites map[string]*configv1.Site, host string) string {
	type candidate struct {
		rank, length int
		createdAtMs  int64
		id           string
		order        int
	}
	var best *candidate
	for id, site := range sites {
		for i, d := range site.GetDomains() {
			var hit bool
			k := candidate{rank: int(d.GetForm()), createdAtMs: site.GetCreatedAtMs(), id: id}
			parent, isSub := "", false
			if at := strings.IndexByte(host, '.'); at >= 0 {
				parent, isSub = host[at+1:], true
			}
			switch d.GetForm() {
			case configv1.DomainForm_DOMAIN_FORM_EXACT:
				hit = host == d.GetName()
			case configv1.DomainForm_DOMAIN_FORM_WILDCARD:
				hit = isSub && parent == d.GetName()
			case configv1.DomainForm_DOMAIN_FORM_SUFFIX:
				hit, k.length = strings.HasSuffix(host, "."+d.GetName()), -len(d.GetName())
			default:
				hit, k.order = regexp.MustCompile(`\A(?:`+d.GetName()+`)\z`).MatchString(host), i
			}
			if hit && (best == nil || slices.Compare(
				[]string{fmt.Sprintf("%02d %06d %020d", k.rank, 1000+k.length, k.createdAtMs), k.id, fmt.Sprintf("%04d", k.order)},
				[]string{fmt.Sprintf("%02d %06d %020d", best.rank, 1000+best.length, best.createdAtMs), best.id, fmt.Sprintf("%04d", best.order)}) < 0) {
				best = &k
			}
		}
	}
	if best == nil {
		return ""
	}
	return best.id
}

func TestNameMovesBetweenSitesInAnyOrder(t *testing.T) {
	c := newCore(t)
	change(t, c, []*configv1.Entry{siteEntry("new", 2, "a.com"), siteEntry("old", 1, "b.com")})
	change(t, c, []*configv1.Entry{siteEntry("old", 1, "b.com", "a.com")})
	if got := hostOwner(c, "a.com"); got != "old" {
		t.Errorf("both claim it: %q has it", got)
	}
	change(t, c, []*configv1.Entry{siteEntry("old", 1, "b.com")})
	if got := hostOwner(c, "a.com"); got != "new" {
		t.Errorf("the older site let go: %q has it", got)
	}
	change(t, c, nil, edgetest.Key("site", "new"))
	if got := hostOwner(c, "a.com"); got != "" {
		t.Errorf("nobody claims it: %q has it", got)
	}
}

func TestSiteThatDoesNotCompileKeepsItsVersion(t *testing.T) {
	for name, spoil := range map[string]func(*configv1.Site){
		"upper-case domain": func(s *configv1.Site) { s.Domains[0].Name = "A.com" },
		"unknown form":      func(s *configv1.Site) { s.Domains[0].Form = 9 },
		"bad pattern":       func(s *configv1.Site) { s.Domains = append(s.Domains, edgetest.Domain("~a(")) },
		"unbalanced group":  func(s *configv1.Site) { s.Domains = append(s.Domains, edgetest.Domain("~a)(?:b")) },
		"long pattern":      func(s *configv1.Site) { s.Domains = append(s.Domains, edgetest.Domain("~"+strings.Repeat("a", 257))) },
		"origin port":       func(s *configv1.Site) { s.Origins[0].Port = 70000 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			change(t, c, []*configv1.Entry{siteEntry("a", 1, "a.com")})
			bad := edgetest.Site(0, "new.com")
			spoil(bad)
			change(t, c, []*configv1.Entry{edgetest.Entry("site", "a", bad), siteEntry("b", 1, "b.com")})
			if hostOwner(c, "a.com") != "a" || hostOwner(c, "new.com") != "" || hostOwner(c, "b.com") != "b" {
				t.Error("the entry did not fail alone")
			}
			failed := c.Status().Failed
			if len(failed) != 1 || failed[0].GetReason() == "" || len(failed[0].GetReceivedHash()) != 32 || len(failed[0].GetRunningHash()) != 32 {
				t.Fatalf("%v", failed)
			}
			change(t, c, []*configv1.Entry{siteEntry("a", 1, "new.com")})
			if hostOwner(c, "new.com") != "a" || len(c.Status().Failed) != 0 {
				t.Error("a good version did not clear the failure")
			}
		})
	}
}

func TestPatternFindsItsLiteralParts(t *testing.T) {
	for text, want := range map[string][3]string{
		`.*\.a\.com`:                       {"", ".a.com", ".a.com"},
		`img[0-9]+\.a\.com`:                {"img", ".a.com", ".a.com"},
		`a\.com`:                           {"a.com", "a.com", "a.com"},
		`(shop)\.(a|b)\.com`:               {"shop.", ".com", "shop."},
		`(?i)abc.*`:                        {"", "", ""},
		`(?:www\.)?a[0-9]`:                 {"", "", "a"},
		`x{3}-[a-z]`:                       {"xxx-", "", "xxx-"},
		`[a-z]+`:                           {"", "", ""},
		`abcdefghijklmnopqrstuvwxyzabcdef`: {"abcdefghijklmnopqrstuvwx", "ijklmnopqrstuvwxyzabcdef", "abcdefghijklmnopqrstuvwxyzabcdef"},
	} {
		p, err := compilePattern(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]string{p.prefix, p.suffix, p.infix}; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
