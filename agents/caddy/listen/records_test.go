package listen

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
)

// Whatever records a write makes, they leave in their order, whole, and by few calls.
func TestRecordsOfAWriteLeaveTogether(t *testing.T) {
	for name, c := range map[string]struct {
		records []int
		// The sizes of what is sent.
		want []int
	}{
		"one":                        {[]int{100}, []int{100}},
		"a frame of HTTP/2":          {[]int{16 << 10, 31}, []int{16<<10 + 31}},
		"small ones":                 {slices.Repeat([]int{1200}, 14), []int{14 * 1200}},
		"more than there is room":    {[]int{16 << 10, 16 << 10, 16 << 10, 16 << 10, 9}, []int{32 << 10, 32<<10 + 9}},
		"one that is larger":         {[]int{5, maxRecords + 1, 6}, []int{5, maxRecords + 1, 6}},
		"none":                       {nil, nil},
		"as many as there is room":   {[]int{maxRecords}, []int{maxRecords}},
		"larger than what is in one": {[]int{maxRecords, 1}, []int{maxRecords, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var r records
			var sizes []int
			var got, want []byte
			send := func(p []byte) (int, error) {
				sizes, got = append(sizes, len(p)), append(got, p...)
				return len(p), nil
			}
			r.begin()
			for i, size := range c.records {
				record := bytes.Repeat([]byte{byte(i + 1)}, size)
				want = append(want, record...)
				if n, err := r.write(record, send); n != size || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := r.end(send); err != nil || !slices.Equal(sizes, c.want) || !bytes.Equal(got, want) {
				t.Errorf("%d sent, %v", sizes, err)
			}
			if n, err := r.write([]byte("alert"), send); n != 5 || err != nil || !bytes.HasSuffix(got, []byte("alert")) {
				t.Error("what comes alone waits", n, err)
			}
		})
	}
}

func TestAWriteWhoseRecordsDoNotLeaveFails(t *testing.T) {
	gone := errors.New("gone")
	c := &Conn{overTLS: true}
	c.Conn = failing{err: gone}
	p := make([]byte, 5000)
	write := func(p []byte) (int, error) {
		_, err := c.records.write(p, c.send)
		return len(p), err
	}
	if n, err := c.together(p, write); n != 0 || !errors.Is(err, gone) {
		t.Error(n, err)
	}
}

// failing takes no bytes.
type failing struct {
	net.Conn
	err error
}

func (f failing) Write([]byte) (int, error) { return 0, f.err }
