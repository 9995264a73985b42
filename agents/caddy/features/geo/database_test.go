package geo

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oschwald/maxminddb-golang/v2"
)

// The packages that nodes get their databases from.
var countryPackage = filepath.Join("..", "..", "..", "..", "node_modules", "@ip-location-db", "iptoasn-country-mmdb", "iptoasn-country.mmdb")

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: npm ci installs it", err)
	}
	return content
}

func openSystems(t testing.TB) *database[system] {
	t.Helper()
	d, err := open(read(t, "testdata/asn.mmdb"), decodeSystem)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAddressesHaveTheRecordOfTheirNetwork(t *testing.T) {
	d := openSystems(t)
	example := system{64500, `Example, "The" Net`}
	for text, want := range map[string]system{
		"198.51.99.255":            {},
		"198.51.100.0":             example,
		"198.51.100.130":           example,
		"198.51.100.131":           {64501, "Other"},
		"198.51.100.255":           {64501, "Other"},
		"198.51.101.0":             {},
		"203.0.113.8":              example,
		"0.0.0.0":                  {},
		"255.255.255.255":          {},
		"2001:db8::":               {64502, "Six"},
		"2001:db8:ffff:ffff::ffff": {64502, "Six"},
		"2001:db9::":               {},
		"::":                       {},
	} {
		if got, err := d.find(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %v %v, not %v", text, got, err, want)
		}
	}
	long, err := d.find(netip.MustParseAddr("203.0.113.7"))
	if err != nil || long.number != 4_200_000_000 || len(long.name) != maxName || !strings.HasPrefix(long.name, "Süd xxx") {
		t.Errorf("%v %v", long, err)
	}
	if want := int64(1_781_722_800); d.built.Unix() != want {
		t.Errorf("built at %v", d.built)
	}
}

// Addresses whose country will not change: of the registries' root servers and of a country's own network.
func TestThePackagedCountriesAreRead(t *testing.T) {
	d, err := open(read(t, countryPackage), decodeCountry())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.records) < 200 || d.built.Year() < 2026 {
		t.Errorf("%d countries, built at %v", len(d.records), d.built)
	}
	for text, want := range map[string]string{"8.8.8.8": "US", "193.0.0.1": "NL", "202.12.27.33": "JP", "2001:200::1": "JP", "10.0.0.1": ""} {
		if got, err := d.find(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %q %v, not %q", text, got, err, want)
		}
	}
}

func TestADatabaseOfSomethingElseIsRefused(t *testing.T) {
	if _, err := open(read(t, countryPackage), decodeSystem); err == nil {
		t.Error("countries taken for autonomous systems")
	}
	if _, err := open(read(t, "testdata/asn.mmdb"), decodeCountry()); err == nil {
		t.Error("autonomous systems taken for countries")
	}
}

func TestATruncatedFileIsRefused(t *testing.T) {
	whole := read(t, "testdata/asn.mmdb")
	for size := range len(whole) {
		if _, err := open(bytes.Clone(whole[:size]), decodeSystem); err == nil {
			t.Errorf("%d of %d bytes are a database", size, len(whole))
		}
	}
}

func TestADamagedFileIsRefusedOrAnswers(t *testing.T) {
	whole := read(t, "testdata/asn.mmdb")
	refused := 0
	for at := range whole {
		for _, bit := range []byte{1, 0x20, 0x80} {
			damaged := bytes.Clone(whole)
			damaged[at] ^= bit
			if tryFile(damaged) != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("none of the damages was noticed")
	}
}

// tryFile opens a file and asks it for addresses at all depths of the tree.
func tryFile(file []byte) error {
	d, err := open(file, decodeSystem)
	if err != nil {
		return err
	}
	for _, text := range []string{"198.51.100.1", "203.0.113.7", "255.255.255.255", "2001:db8::1", "::", "ffff::"} {
		if _, err := d.find(netip.MustParseAddr(text)); err != nil {
			return err
		}
	}
	return nil
}

func FuzzOpen(f *testing.F) {
	f.Add(read(f, "testdata/asn.mmdb"))
	f.Fuzz(func(_ *testing.T, file []byte) {
		_ = tryFile(bytes.Clone(file))
		_, _ = open(file, decodeCountry())
	})
}

func TestOnlyTwoCapitalsAreACountry(t *testing.T) {
	for text, ok := range map[string]bool{"DE": true, "": true, "de": false, "DEU": false, "D": false, "D\x00": false} {
		file := countryDatabase(text)
		tree, err := maxminddb.OpenBytes(file)
		if err != nil {
			t.Fatal(err)
		}
		code, err := decodeCountry()(tree.Lookup(netip.MustParseAddr("128.0.0.1")))
		if (err == nil) != ok || ok && code != text {
			t.Errorf("%q: %q %v", text, code, err)
		}
	}
}

// countryDatabase is a database for IPv4 of one node whose upper half has a record as those of cities have it.
func countryDatabase(code string) []byte {
	text := func(s string) string { return string([]byte{2<<5 | byte(len(s))}) + s }
	const metadata = "\xab\xcd\xefMaxMind.com" + "\xe7" +
		"\x5bbinary_format_major_version\xa1\x02" + "\x5bbinary_format_minor_version\xa0" +
		"\x4bbuild_epoch\x00\x02" + "\x4ddatabase_type\x41x" + "\x4aip_version\xa1\x04" +
		"\x4anode_count\xc1\x01" + "\x4brecord_size\xa1\x18"
	tree := "\x00\x00\x01" + "\x00\x00\x11" + strings.Repeat("\x00", separator)
	return []byte(tree + "\xe1" + text("country") + "\xe1" + text("iso_code") + text(code) + metadata)
}

func TestADatabaseForIPv4KnowsNothingOfOthers(t *testing.T) {
	d, err := open(countryDatabase("DE"), decodeCountry())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"200.0.0.1": "DE", "1.1.1.1": "", "2001:db8::1": ""} {
		if got, err := d.find(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
}

func TestFindingAllocatesNothing(t *testing.T) {
	d := openSystems(t)
	known, other := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db9::1")
	if n := testing.AllocsPerRun(100, func() { _, _ = d.find(known); _, _ = d.find(other) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	d, err := open(read(b, countryPackage), decodeCountry())
	if err != nil {
		b.Fatal(err)
	}
	addrs := make([]netip.Addr, 4096)
	x := uint32(1)
	for i := range addrs {
		x = x*1664525 + 1013904223
		addrs[i] = netip.AddrFrom4([4]byte{byte(x>>24)%220 + 1, byte(x >> 16), byte(x >> 8), byte(x)})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = d.find(addrs[i%len(addrs)])
	}
}
