package origin

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"testing"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// What became of a request at its origins is told once: the status of the last answer, 0 where there was none.
func TestOutcome(t *testing.T) {
	good, _ := answering(t, okAnswer)
	closing := newRawOrigin(t, func(c net.Conn, _ int64) { readRequest(bufio.NewReader(c)) }).Addr().String()
	failing := once(t, "HTTP/1.1 503 Bad\r\nContent-Length: 4\r\n\r\nbad3").Addr().String()
	own := once(t, "HTTP/1.1 500 Bad\r\nContent-Length: 4\r\n\r\nbad0").Addr().String()
	missing := once(t, "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno").Addr().String()
	for _, c := range []struct {
		name    string
		origins []string
		want    []int
	}{
		{"an answer", []string{good.Addr().String()}, []int{200}},
		{"the origin's own error", []string{own}, []int{500}},
		{"an error of the client", []string{missing}, []int{404}},
		{"no connection", []string{dead}, []int{0}},
		{"no answer", []string{closing}, []int{0}},
		{"the second origin answers", []string{failing, good.Addr().String()}, []int{200}},
		{"all fail, the last with an answer", []string{dead, failing}, []int{503}},
		{"no origin at all", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []*configv1.Origin
			for i, address := range c.origins {
				list = append(list, originAt(fmt.Sprint(i), address))
			}
			e := newEdge(t, settings(), list...)
			var asked *exchange.Exchange
			var got []int
			e.request = func(x *exchange.Exchange) { asked = x }
			e.answer = func(*exchange.Answer) {
				if exchange.Origin.Of(asked).Asked {
					got = append(got, exchange.Origin.Of(asked).Status)
				}
			}
			e.send("GET", "/", nil)
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}
