package geo

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// coreWith is a core whose files have been read for the first time.
func coreWith(t *testing.T, values map[string]any) (*component, exchange.Geo) {
	t.Helper()
	c := core.New(core.Options{StateDir: t.TempDir(), Values: values})
	geo := core.Find[exchange.Geo](c)
	g := geo.(*component)
	g.Restore()
	return g, geo
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

var (
	known   = netip.MustParseAddr("198.51.100.1")
	unknown = netip.MustParseAddr("192.0.2.1")
)

func TestWithoutADatabaseNothingIsKnownOfAnyAddress(t *testing.T) {
	g, geo := coreWith(t, nil)
	for _, addr := range []netip.Addr{known, netip.MustParseAddr("10.0.0.1"), {}} {
		if code, ready := geo.Country(addr); code != "" || ready {
			t.Errorf("%v: %q %v", addr, code, ready)
		}
		if number, name, ready := geo.AS(addr); number != 0 || name != "" || ready {
			t.Errorf("%v: %d %q %v", addr, number, name, ready)
		}
	}
	status := &edgev1.GetStatusResponse{}
	g.FillStatus(status)
	if got := status.GetGeoip().GetCountry(); got.GetReady() || got.GetBuiltAt() != 0 || got.GetProblem() != "no database is configured" {
		t.Error(got)
	}
}

func TestOneDatabaseIsReadyWithoutTheOther(t *testing.T) {
	g, geo := coreWith(t, map[string]any{"geoip_asn": "testdata/asn.mmdb", "geoip_country": filepath.Join(t.TempDir(), "none.mmdb")})
	if number, name, ready := geo.AS(known); number != 64500 || name != `Example, "The" Net` || !ready {
		t.Errorf("%d %q %v", number, name, ready)
	}
	if _, ready := geo.Country(known); ready {
		t.Error("there is no database of countries")
	}
	status := &edgev1.GetStatusResponse{}
	g.FillStatus(status)
	if got := status.GetGeoip().GetAsn(); !got.GetReady() || got.GetBuiltAt() != 1_781_722_800 || got.GetProblem() != "" {
		t.Error(got)
	}
	if got := status.GetGeoip().GetCountry(); got.GetReady() || !strings.Contains(got.GetProblem(), "no such file") {
		t.Error(got)
	}
}

func TestAnAddressWithoutARecordIsKnownToHaveNone(t *testing.T) {
	_, geo := coreWith(t, map[string]any{"geoip_asn": "testdata/asn.mmdb"})
	for _, addr := range []netip.Addr{
		unknown, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("127.0.0.1"),
		netip.MustParseAddr("::1"), netip.MustParseAddr("fe80::1"), netip.IPv6Unspecified(), {},
	} {
		if number, name, ready := geo.AS(addr); number != 0 || name != "" || !ready {
			t.Errorf("%v: %d %q %v", addr, number, name, ready)
		}
	}
	if number, _, _ := geo.AS(netip.MustParseAddr("::ffff:198.51.100.1")); number != 64500 {
		t.Error("a mapped address is not the address")
	}
}

func TestPrivateAddressesHaveNoRecordWhateverAFileSays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "country.mmdb")
	// Of one node: everything from 128.0.0.0 on.
	replace(t, file, countryDatabase("DE"))
	_, geo := coreWith(t, map[string]any{"geoip_country": file})
	for text, want := range map[string]string{"200.0.0.1": "DE", "192.168.0.1": "", "169.254.1.1": "", "172.16.0.1": ""} {
		if code, ready := geo.Country(netip.MustParseAddr(text)); code != want || !ready {
			t.Errorf("%s: %q %v", text, code, ready)
		}
	}
}

func TestAFileIsTakenWhenItComesAndKeptWhenTheNextIsBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "asn.mmdb")
	g, geo := coreWith(t, map[string]any{"geoip_asn": file})
	if _, _, ready := geo.AS(known); ready {
		t.Fatal("there is no file")
	}
	whole := read(t, "testdata/asn.mmdb")
	replace(t, file, whole)
	if changed, err := g.systems.refresh(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := g.systems.refresh(); changed || err != nil {
		t.Fatal("a file that is the same is read again", err)
	}
	for what, breakIt := range map[string]func(){
		"truncated": func() { replace(t, file, whole[:len(whole)/2]) },
		"empty":     func() { replace(t, file, nil) },
		"gone":      func() { _ = os.Remove(file) },
		"a folder":  func() { _ = os.Mkdir(file, 0o700) },
	} {
		_ = os.Remove(file)
		breakIt()
		if _, err := g.systems.refresh(); err == nil || g.systems.lastProblem() == "" {
			t.Errorf("%s: nothing is wrong", what)
		}
		if changed, err := g.systems.refresh(); changed || err == nil {
			t.Errorf("%s: told again, %v", what, err)
		}
		if number, _, ready := geo.AS(known); number != 64500 || !ready {
			t.Errorf("%s: the database before is gone", what)
		}
	}
	_ = os.Remove(file)
	replace(t, file, whole)
	if changed, err := g.systems.refresh(); !changed || err != nil || g.systems.lastProblem() != "" {
		t.Errorf("%v %v %q", changed, err, g.systems.lastProblem())
	}
}

// asked counts what databases are asked.
type asked struct {
	exchange.Geo
	times int
}

func (a *asked) AS(addr netip.Addr) (uint32, string, bool) {
	a.times++
	return a.Geo.AS(addr)
}

func TestDatabasesAreAskedOnceAnExchangeWhenSomebodyAsks(t *testing.T) {
	_, geo := coreWith(t, map[string]any{"geoip_asn": "testdata/asn.mmdb"})
	system := exchange.Place{AS: 64500, Network: `Example, "The" Net`, ASReady: true}
	x := &exchange.Exchange{}
	for name, c := range map[string]struct {
		client netip.Addr
		geo    exchange.Geo
		asks   int
		want   exchange.Place
	}{
		"nobody asks":                 {known, geo, 0, exchange.Place{}},
		"one asks":                    {known, geo, 1, system},
		"several ask":                 {known, geo, 3, system},
		"an address without a record": {unknown, geo, 2, exchange.Place{ASReady: true}},
		"nothing knows addresses":     {known, nil, 2, exchange.Place{}},
	} {
		x.In.Client = c.client
		counted := &asked{Geo: c.geo}
		var source exchange.Geo
		if c.geo != nil {
			source = counted
		}
		var got exchange.Place
		for range c.asks {
			got = exchange.PlaceOf(x, source)
		}
		want := min(c.asks, 1)
		if c.geo == nil {
			want = 0
		}
		if got != c.want || counted.times != want {
			t.Errorf("%s: %+v, asked %d times", name, got, counted.times)
		}
		x.Reset()
	}
}
