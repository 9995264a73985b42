package ja4

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

func greetings(t testing.TB) []greeting {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "test", "vectors", "ja4.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Rows []greeting }
	if err := json.Unmarshal(content, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Rows) < 30 {
		t.Fatalf("%d rows", len(vectors.Rows))
	}
	return vectors.Rows
}

func TestPublishedFingerprintsOfHellosAsTheyAreSent(t *testing.T) {
	for _, row := range greetings(t) {
		t.Run(row.Name, func(t *testing.T) {
			if got := Of(row.said(t), row.QUIC); got != row.JA4 {
				t.Errorf("%s, want %s", got, row.JA4)
			}
		})
	}
}

func TestOrderDoesNotMatterButThatOfAlgorithmsDoes(t *testing.T) {
	hello := greetings(t)[0].said(t)
	want := Of(hello, false)
	slices.Reverse(hello.CipherSuites)
	slices.Reverse(hello.Extensions)
	slices.Reverse(hello.SupportedVersions)
	if got := Of(hello, false); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	slices.Reverse(hello.SignatureSchemes)
	if got := Of(hello, false); got == want {
		t.Error("the order of algorithms does not count")
	}
}

func TestCountsEndAt99AndOnlyTrueGREASEIsIgnored(t *testing.T) {
	hello := &tls.ClientHelloInfo{}
	for i := range uint16(120) {
		hello.CipherSuites = append(hello.CipherSuites, 0x4000+i)
		hello.Extensions = append(hello.Extensions, 0x5000+i)
	}
	if got := Of(hello, true)[:10]; got != "q00i999900" {
		t.Error(got)
	}
	// Low halves alike are not enough, nor are equal bytes.
	hello.CipherSuites, hello.Extensions = []uint16{0x1a2a, 0x2a1a, 0x0b0b, 0xaaaa}, []uint16{0x0a1a, 0x1111, 0x0a0a}
	if got := Of(hello, true)[:10]; got != "q00i030200" {
		t.Error(got)
	}
}

func TestAHelloIsLeftAsItIs(t *testing.T) {
	hello := greetings(t)[0].said(t)
	ciphers, extensions := slices.Clone(hello.CipherSuites), slices.Clone(hello.Extensions)
	Of(hello, false)
	if !slices.Equal(ciphers, hello.CipherSuites) || !slices.Equal(extensions, hello.Extensions) {
		t.Error("the hello was changed")
	}
}

func TestOnlyTheTextIsAllocated(t *testing.T) {
	hello := greetings(t)[0].said(t)
	if n := testing.AllocsPerRun(100, func() { Of(hello, false) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

var form = regexp.MustCompile(`^[tq](1[0-3]|s[23]|d[1-3]|00)[di]\d{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$`)

func FuzzEveryHelloHasAWholeFingerprint(f *testing.F) {
	f.Add([]byte{0x13, 0x01, 0x1a, 0x1a}, []byte{0, 0, 0, 16}, []byte{4, 3}, []byte{3, 4}, "h2", true)
	f.Add([]byte{}, []byte{}, []byte{}, []byte{}, "", false)
	f.Add([]byte{0xff}, []byte{1}, []byte{2}, []byte{0xfe, 0xff}, "\xab", false)
	f.Fuzz(func(t *testing.T, ciphers, extensions, algorithms, versions []byte, protocol string, quic bool) {
		hello := &tls.ClientHelloInfo{
			CipherSuites: pairs(ciphers), Extensions: pairs(extensions), SupportedVersions: pairs(versions), SupportedProtos: []string{protocol},
		}
		for _, v := range pairs(algorithms) {
			hello.SignatureSchemes = append(hello.SignatureSchemes, tls.SignatureScheme(v))
		}
		made := Of(hello, quic)
		if !form.MatchString(made) {
			t.Fatalf("%q", made)
		}
		slices.Reverse(hello.CipherSuites)
		hello.Extensions = append(hello.Extensions, 0x2a2a)
		if again := Of(hello, quic); again != made {
			t.Fatalf("%q is %q in another order and with GREASE", made, again)
		}
	})
}

func pairs(b []byte) (values []uint16) {
	for ; len(b) > 1; b = b[2:] {
		values = append(values, uint16(b[0])<<8|uint16(b[1]))
	}
	return values
}

func BenchmarkOf(b *testing.B) {
	hello := greetings(b)[0].said(b)
	b.ReportAllocs()
	for b.Loop() {
		Of(hello, false)
	}
}
