package listen

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestOnlyRequestsWithABodyHaveOneOverHTTP3(t *testing.T) {
	type seen struct {
		length int64
		body   string
	}
	asked := make(chan seen, 1)
	e := serveQUIC(t, Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		body, _ := io.ReadAll(r.Body)
		asked <- seen{r.ContentLength, string(body)}
	})
	visitor, _ := e.visitor(t, "a.com")
	for _, c := range []struct {
		method string
		body   io.Reader
		want   seen
	}{
		{"GET", nil, seen{0, ""}},
		{"HEAD", nil, seen{0, ""}},
		{"DELETE", io.NopCloser(strings.NewReader("body")), seen{-1, "body"}},
		{"POST", io.NopCloser(strings.NewReader("body")), seen{-1, "body"}},
		{"POST", strings.NewReader("body"), seen{4, "body"}},
	} {
		r, err := http.NewRequest(c.method, e.url(), c.body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := visitor.Do(r)
		if err != nil {
			t.Fatal(c.method, err)
		}
		response.Body.Close()
		if got := <-asked; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.method, got, c.want)
		}
	}
}
