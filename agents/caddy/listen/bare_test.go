package listen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// response reads what comes back on stream 1: a status with the names of its fields, or the end of the stream or connection.
func (c *attacker) response(t *testing.T) string {
	t.Helper()
	c.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			got := f.PseudoValue("status")
			for _, field := range f.RegularFields() {
				if field.Name == "x-svc-error" || field.Name == "x-request-id" {
					got += " " + field.Name
				}
			}
			return got
		case *http2.RSTStreamFrame:
			return "reset " + f.ErrCode.String()
		case *http2.GoAwayFrame:
			return "goaway " + f.ErrCode.String()
		}
	}
}

// net/http answers some requests of HTTP/2 before any handler sees them. These are all of its responses without X-Svc-Error
// and a request ID; everything else that it refuses ends the stream or the connection, without a response. A list that
// changes here is to change in the README, too.
func TestResponsesOfHTTP2WithoutTheHandler(t *testing.T) {
	const reset, page = "reset PROTOCOL_ERROR", "200"
	usual := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a.com"}, {":path", "/"}}
	with := func(more ...[2]string) [][2]string { return append(usual[:len(usual):len(usual)], more...) }
	a := attack(t)
	for name, c := range map[string]struct {
		fields [][2]string
		want   string
	}{
		"usual":                {usual, page},
		"no path":              {usual[:3], reset},
		"no method":            {usual[1:], reset},
		"no scheme":            {[][2]string{usual[0], usual[2], usual[3]}, reset},
		"no authority":         {[][2]string{usual[0], usual[1], usual[3]}, page},
		"another scheme":       {[][2]string{usual[0], {":scheme", "ftp"}, usual[2], usual[3]}, reset},
		"relative path":        {[][2]string{usual[0], usual[1], usual[2], {":path", "x"}}, reset},
		"pseudo field twice":   {with(usual[3]), reset},
		"unknown pseudo field": {append([][2]string{{":odd", "x"}}, usual...), reset},
		"pseudo field at end":  {append([][2]string{{"x", "y"}}, usual...), reset},
		"capital letters":      {with([2]string{"X-Odd", "y"}), reset},
		"blank in a name":      {with([2]string{"x y", "z"}), reset},
		"LF in a value":        {with([2]string{"x", "y\nz"}), reset},
		"odd length":           {with([2]string{"content-length", "x"}), page},
		"expectation":          {with([2]string{"expect", "more"}), page},
		"connection":           {with([2]string{"connection", "close"}), "400"},
		"proxy-connection":     {with([2]string{"proxy-connection", "close"}), "400"},
		"keep-alive":           {with([2]string{"keep-alive", "5"}), "400"},
		"upgrade":              {with([2]string{"upgrade", "h2c"}), "400"},
		"transfer coding":      {with([2]string{"transfer-encoding", "chunked"}), "400"},
		"te":                   {with([2]string{"te", "gzip"}), "400"},
		"te: trailers":         {with([2]string{"te", "trailers"}), page},
		"header of 90 KB":      {with(repeated([2]string{"x", strings.Repeat("y", 1000)}, 90)...), page},
		"header of 100 KB":     {with(repeated([2]string{"x", strings.Repeat("y", 1000)}, 100)...), "431"},
		"header of 400 KB":     {with(repeated([2]string{"x", strings.Repeat("y", 1000)}, 400)...), "goaway PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			client := a.dial(t)
			for _, f := range c.fields {
				// A buffer takes everything.
				_ = client.hpack.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
			}
			block := client.heads.Bytes()
			first := block[:min(len(block), maxFrameBytes)]
			if err := client.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: len(first) == len(block)}); err != nil {
				t.Fatal(err)
			}
			for block = block[len(first):]; len(block) > 0; {
				next := block[:min(len(block), maxFrameBytes)]
				block = block[len(next):]
				if client.WriteContinuation(1, len(block) == 0, next) != nil {
					break
				}
			}
			if got := client.response(t); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func repeated(field [2]string, n int) (all [][2]string) {
	for i := range n {
		all = append(all, [2]string{fmt.Sprint(field[0], i), field[1]})
	}
	return all
}
