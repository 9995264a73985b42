package origin

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// said is a report in short: responses and requests of each origin, and failures by class.
func said(list []*nodev1.OriginTraffic) string {
	var lines []string
	for _, o := range list {
		responses := uint32(0)
		for _, n := range o.Latency {
			responses += n
		}
		line := fmt.Sprintf("%s %d/%d", o.OriginId, responses, o.Requests)
		for _, f := range o.Failures {
			line += fmt.Sprintf(" %s:%d", f.Name, f.Count)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// Every try counts at its origin, by what became of it.
func TestTrafficCountsEveryTryAtItsOrigin(t *testing.T) {
	good, _ := answering(t, okAnswer)
	bad, _ := answering(t, "HTTP/1.1 500 Bad\r\nContent-Length: 0\r\n\r\n")
	busy, _ := answering(t, "HTTP/1.1 503 Bad\r\nContent-Length: 0\r\n\r\n")
	cut := newRawOrigin(t, func(c net.Conn, _ int64) {
		_, _, _ = readRequest(bufio.NewReader(c))
		_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\nbegun")
	})
	for _, c := range []struct {
		name    string
		origins []string
		want    string
	}{
		{"a response", []string{good.Addr().String()}, "0 1/1"},
		{"a status of 5xx", []string{bad.Addr().String()}, "0 1/1 upstream_status:1"},
		{"no connection, then another origin", []string{dead, good.Addr().String()}, "0 0/1 connect_failed:1, 1 1/1"},
		{"a retried status, then another origin", []string{busy.Addr().String(), good.Addr().String()}, "0 1/1 upstream_status:1, 1 1/1"},
		{"a body that breaks off", []string{cut.Addr().String()}, "0 1/1 connect_failed:1"},
		{"a forbidden address", []string{"192.168.7.7:80"}, "0 0/1 address_forbidden:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEdge(t, settings(), listOf(c.origins...)...)
			e.raw("GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			if got := said(e.state.traffic.report(time.Now())); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
	t.Run("another port by a rule", func(t *testing.T) {
		e := newEdge(t, settings(), listOf(dead)...)
		e.request = func(x *exchange.Exchange) { x.Out.Port = portOf(good) }
		e.send("GET", "/", nil)
		if got := said(e.state.traffic.report(time.Now())); got != "" {
			t.Error(got)
		}
	})
}

// The figures are of the last minute, whatever is published in it. An origin that is quiet for so long has none.
func TestTrafficIsOfTheLastMinute(t *testing.T) {
	state, now := NewState(), time.Unix(1_800_000_000, 0)
	compile := func() *Pool {
		p, err := Compile("site", listOf(dead), settings(), state)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	count := func(p *Pool) { p.figuresOf(0, &p.origins[0]).respond(70*time.Millisecond, 200) }
	check := func(want string) {
		t.Helper()
		if got := said(state.traffic.report(now)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	before := compile()
	count(before)
	check("0 1/1")
	now = now.Add(30 * time.Second)
	after := compile()
	count(after)
	count(before)
	check("0 3/3")
	check("0 3/3")
	now = now.Add(30 * time.Second)
	check("0 2/2")
	now = now.Add(30 * time.Second)
	check("")
	count(before)
	count(after)
	check("0 2/2")
	if latency := state.traffic.report(now)[0].Latency; len(latency) != 11 || latency[10] != 2 {
		t.Errorf("70 ms is not in the bucket up to 96: %v", latency)
	}
	now = now.Add(time.Hour)
	check("")
}

// A node with many origins tells those where most failed, and counts no more than it has room for.
func TestTrafficIsBounded(t *testing.T) {
	state := NewState()
	for i := range maxTraffic + 10 {
		f := state.traffic.of(originKey{site: "site", origin: fmt.Sprintf("%05d", i)})
		if (f == nil) != (i >= maxTraffic) {
			t.Fatalf("%d: %v", i, f)
		}
		f.respond(0, 200)
		if i == 4711 {
			f.fail(failTimeout)
		}
	}
	list := state.traffic.report(time.Now())
	if len(list) != maxReportedTraffic || said(list[:2]) != "04711 1/2 timeout:1, 00000 1/1" {
		t.Errorf("%d: %s", len(list), said(list[:2]))
	}
	state.traffic.report(time.Now().Add(time.Hour))
	if state.traffic.of(originKey{site: "site", origin: "other"}) == nil {
		t.Error("there is no room although all are quiet")
	}
}

func BenchmarkTrafficOfAResponse(b *testing.B) {
	p, err := Compile("site", listOf(dead), settings(), NewState())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.figuresOf(0, &p.origins[0]).respond(40*time.Millisecond, 200)
	}
}
