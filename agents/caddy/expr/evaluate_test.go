package expr

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// browser is a request of a browser, whose values are at hand as an exchange has them.
type browser struct{ lists bool }

func (*browser) Text(field Field, name string) string {
	switch field {
	case Host:
		return "www.example.com"
	case Method:
		return "GET"
	case Path:
		return "/shop/Items/12345"
	case UserAgent:
		return "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
	case Country:
		return "DE"
	}
	return ""
}

func (*browser) Number(field Field) int64 { return 443 }

func (*browser) Truth(Field) bool { return true }

var browserAddress = netip.MustParseAddr("198.51.100.7")

func (*browser) Address(Field) netip.Addr { return browserAddress }

func (b *browser) Contains(string, netip.Addr) bool { return b.lists }

// classes are conditions that allocate nothing.
func classes() map[string]*n {
	var codes, large []*v
	for i := range 256 {
		codes = append(codes, textValue(fmt.Sprintf("%03d", i)))
		large = append(large, cidrValue(fmt.Sprintf("10.%d.0.0/16", i)))
	}
	return map[string]*n{
		"comparison":    compare(eq, "http.host", "", textValue("www.example.com")),
		"order":         compare(gt, "edge.server_port", "", numberValue(80)),
		"in-set":        compare(oneOf, "http.request.method", "", textValue("GET"), textValue("HEAD")),
		"in-large-set":  compare(oneOf, "ip.geoip.country", "", codes...),
		"in-list":       {Op: listed, Field: "ip.src", ListId: "office"},
		"cidr":          compare(eq, "ip.src", "", cidrValue("198.51.100.0/24")),
		"in-large-cidr": compare(oneOf, "ip.src", "", large...),
		"contains":      compare(has, "http.user_agent", "", textValue("Safari")),
		"wildcard":      compare(glob, "http.request.uri.path", "", textValue("/shop/*/1*5")),
		"starts_with":   called("starts_with", &n{Op: read, Field: "http.request.uri.path"}, literal(textValue("/shop/"))),
		"len":           {Op: gt, Children: []*n{called("len", &n{Op: read, Field: "http.host"})}, Values: []*v{numberValue(3)}},
		"six":           six(),
	}
}

func six() *n {
	return &n{Op: and, Children: []*n{
		compare(eq, "http.host", "", textValue("www.example.com")),
		compare(oneOf, "http.request.method", "", textValue("GET"), textValue("HEAD")),
		called("starts_with", &n{Op: read, Field: "http.request.uri.path"}, literal(textValue("/shop/"))),
		compare(eq, "ip.src", "", cidrValue("198.51.100.0/24")),
		compare(eq, "ssl", "", truthValue(true)),
		{Op: not, Children: []*n{compare(eq, "ip.geoip.country", "", textValue("FR"))}},
	}}
}

func TestConditionsAllocateNothing(t *testing.T) {
	var values Values = &browser{lists: true}
	for name, root := range classes() {
		condition := mustCompile(t, root)
		holds := false
		if allocations := testing.AllocsPerRun(100, func() { holds, _ = condition.Holds(values) }); allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
		if holds == strings.Contains(name, "large") {
			t.Errorf("%s: %v", name, holds)
		}
	}
}

func TestWildcardsOfLongValuesAllocateNothing(t *testing.T) {
	values := &given{texts: map[string]string{"http.user_agent": strings.Repeat("Ab", 4096)}}
	condition := mustCompile(t, compare(glob, "http.user_agent", "", textValue("a*BA*b")))
	holds := false
	if allocations := testing.AllocsPerRun(100, func() { holds, _ = condition.Holds(values) }); allocations != 0 || !holds {
		t.Errorf("%v allocations, %v", allocations, holds)
	}
}

func TestAFailureDecidesWhereItIsReached(t *testing.T) {
	long := &given{texts: map[string]string{"http.host": strings.Repeat("a", 5000)}}
	tooLong := &n{Op: eq, Children: []*n{called("concat", &n{Op: read, Field: "http.host"}, &n{Op: read, Field: "http.host"})}, Values: []*v{textValue("a")}}
	no, yes := literal(truthValue(false)), literal(truthValue(true))
	for _, c := range []struct {
		name    string
		root    *n
		failure Failure
	}{
		{"not", &n{Op: not, Children: []*n{tooLong}}, ResultTooLong},
		{"and behind false", &n{Op: and, Children: []*n{no, tooLong}}, 0},
		{"and before false", &n{Op: and, Children: []*n{tooLong, no}}, ResultTooLong},
		{"and behind true", &n{Op: and, Children: []*n{yes, tooLong}}, ResultTooLong},
	} {
		if _, failure := mustCompile(t, c.root).Holds(long); failure != c.failure {
			t.Errorf("%s: %q", c.name, failure)
		}
	}
	header, err := compiledValue(t, &n{Op: read, Field: "http.host"})
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := header.BytesFor(ForHeader, long); failure != UnusableResult {
		t.Errorf("%q", failure)
	}
}

func TestWhatAnExpressionReadsIsKnown(t *testing.T) {
	c := mustCompile(t, &n{Op: and, Children: []*n{
		{Op: listed, Field: "ip.src", ListId: "office"},
		{Op: listed, Field: "ip.src", ListId: "office"},
		compare(gt, "ip.geoip.asnum", "", numberValue(1)),
	}})
	if !c.Field(Source) || !c.Field(ASNumber) || c.Field(Host) || c.Response() || strings.Join(c.Lists(), " ") != "office" {
		t.Errorf("%+v", c.Reads)
	}
	if c = mustCompile(t, compare(gt, "http.response.code", "", numberValue(1))); !c.Response() {
		t.Error("it reads no response")
	}
}

func BenchmarkCondition(b *testing.B) {
	all := classes()
	all["matches"] = compare(find, "http.user_agent", "", textValue(`(curl|wget|python-requests)/`))
	all["matches without a text"] = compare(find, "http.user_agent", "", textValue(`[0-9]{4}\.[0-9]`))
	all["matches what is there"] = compare(find, "http.user_agent", "", textValue(`(Chrome|Firefox)/[0-9]+`))
	for name, root := range all {
		b.Run(name, func(b *testing.B) {
			condition := mustCompile(b, root)
			var values Values = &browser{}
			b.ReportAllocs()
			for b.Loop() {
				condition.Holds(values)
			}
		})
	}
}

func BenchmarkDecodeAndCompile(b *testing.B) {
	raw := encode(b, six())
	b.ReportAllocs()
	for b.Loop() {
		tree, _ := Decode(raw)
		if _, err := CompileCondition(tree); err != nil {
			b.Fatal(err)
		}
	}
}
