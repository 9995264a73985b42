package rules

import (
	"testing"
	"unsafe"
)

// A redirect is looked up without a copy of its source: the README has what that wins.
func BenchmarkInternals(b *testing.B) {
	var room [maxSource]byte
	n := copy(room[:], "www.shop.example/some/path/of/a/page.html")
	var own sources
	for name, text := range map[string]func([]byte) string{
		"with":    func(p []byte) string { return unsafe.String(&p[0], len(p)) },
		"without": func(p []byte) string { return string(p) },
	} {
		b.Run("source of a redirect/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				own.Get(text(room[:n]))
			}
		})
	}
}
