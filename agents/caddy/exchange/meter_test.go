package exchange

import (
	"strings"
	"testing"
)

type metered struct {
	Meter
	node, site, other Account
	refused           []int
}

func newMetered() *metered {
	m := &metered{}
	m.node.Init(func() {}, func(status int) { m.refused = append(m.refused, status) })
	m.site.Init(func() {}, nil)
	m.other.Init(func() {}, nil)
	m.Init(&m.node)
	return m
}

func (m *metered) expect(t *testing.T, what string, node, site, other uint64) {
	t.Helper()
	for name, c := range map[string]struct {
		account *Account
		want    uint64
	}{"node": {&m.node, node}, "site": {&m.site, site}, "other": {&m.other, other}} {
		if got, _ := c.account.Take(); got != c.want {
			t.Errorf("%s: the %s received %d, not %d", what, name, got, c.want)
		}
	}
}

// However the bytes of requests come in pieces, and however many the server reads at once, each request has its own.
func TestRequestsThatAreReadAheadHaveTheirOwnBytes(t *testing.T) {
	heads := []string{
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
		"GET /b HTTP/1.1\nHost: b\n\n",
		// Empty lines before a request belong to it.
		"\r\nGET /c HTTP/1.1\r\nHost: a\r\nX: \r\n \r\n\r\n",
	}
	const body = "a\r\n\r\n"
	rest := "GET /never"
	all := heads[0] + body + heads[1] + heads[2] + rest
	for piece := 1; piece <= len(all); piece++ {
		m := newMetered()
		sent := 0
		// The server reads until it has a whole head.
		until := func(n int) {
			for sent < n {
				next := min(sent+piece, len(all))
				m.Received([]byte(all[sent:next]))
				sent = next
			}
		}
		until(len(heads[0]))
		m.Begin(5, false)
		m.Bill(&m.site)
		until(len(heads[0] + body))
		m.End()
		until(len(heads[0] + body + heads[1]))
		m.Begin(0, false)
		m.Bill(&m.other)
		m.End()
		until(len(all) - len(rest))
		m.Begin(0, false)
		m.End()
		until(len(all))
		m.Close()
		m.expect(t, "all", uint64(len(heads[2]+rest)), uint64(len(heads[0]+body)), uint64(len(heads[1])))
	}
}

func TestBytesCountAsTheyFlow(t *testing.T) {
	m := newMetered()
	const head = "PUT / HTTP/1.1\r\nContent-Length: 100\r\n\r\n"
	m.Received([]byte(head))
	m.Begin(100, false)
	m.expect(t, "before the site is known", 0, 0, 0)
	m.Bill(&m.site)
	m.expect(t, "head", 0, uint64(len(head)), 0)
	m.Received(make([]byte, 60))
	m.expect(t, "a part of the body", 0, 60, 0)
	m.Sent(make([]byte, 7))
	if _, sent := m.site.Take(); sent != 7 {
		t.Errorf("%d", sent)
	}
	m.Close()
	m.expect(t, "aborted", 0, 0, 0)
}

func TestATunnelCountsForItsRequestBothWays(t *testing.T) {
	m := newMetered()
	head := "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
	m.Received([]byte(head + "GET / HTTP/1.1\r\n\r\nearly"))
	m.Begin(0, false)
	m.Bill(&m.site)
	m.KeepAll()
	m.Received([]byte("later"))
	m.Close()
	m.expect(t, "tunnel", 0, uint64(len(head)+len("GET / HTTP/1.1\r\n\r\nearlylater")), 0)
}

func TestWhatTheServerRefusesCountsForTheNode(t *testing.T) {
	m := newMetered()
	m.Received([]byte("GET / HTTP/1.1\r\n\r\nnonsense\r\n\r\n"))
	m.Begin(0, false)
	m.Bill(&m.site)
	m.Sent([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	m.End()
	answer := "HTTP/1.1 400 Bad Request\r\n\r\n"
	m.Sent([]byte(answer))
	if _, sent := m.node.Take(); sent != uint64(len(answer)) || len(m.refused) != 1 || m.refused[0] != 400 {
		t.Errorf("%d %v", sent, m.refused)
	}
	m.Close()
	m.expect(t, "a bad request", uint64(len("nonsense\r\n\r\n")), uint64(len("GET / HTTP/1.1\r\n\r\n")), 0)
}

// Nothing is lost and nothing counted twice, whatever comes in whatever pieces.
func FuzzMeter(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", byte(3), int64(0), false)
	f.Add(strings.Repeat("\n", 100), byte(1), int64(-1), true)
	f.Fuzz(func(t *testing.T, text string, piece byte, length int64, whole bool) {
		m := newMetered()
		for at, n := 0, 0; at < len(text); n++ {
			next := min(at+int(piece)+1, len(text))
			m.Received([]byte(text[at:next]))
			at = next
			switch n % 4 {
			case 1:
				m.Begin(length, whole)
			case 2:
				m.Bill(&m.site)
			case 3:
				m.End()
			}
		}
		m.Close()
		node, _ := m.node.Take()
		site, _ := m.site.Take()
		if node+site != uint64(len(text)) {
			t.Fatalf("%d and %d of %d", node, site, len(text))
		}
	})
}
