//go:build cgo

package confine

import (
	// Its C code makes the binary one with C code.
	_ "net"
	"strings"
	"testing"
)

// A program with C code, as for the race detector, has threads that Go does not know: it says that it is not confined.
func TestABuildWithCCodeSaysThatItIsNotConfined(t *testing.T) {
	if err := Self(); err != nil || !strings.Contains(Problem(), "capabilities: ") {
		t.Errorf("%v %q", err, Problem())
	}
}
