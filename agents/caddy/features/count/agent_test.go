package count

import (
	"fmt"
	"testing"

	"edge.svc/caddy/exchange"
)

func TestUserAgentsAreClassified(t *testing.T) {
	tests := []struct {
		text string
		want agent
	}{
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36", agent{chrome, windows, desktop}},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0", agent{edge, windows, desktop}},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15", agent{safari, macOS, desktop}},
		{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0 Mobile/15E148 Safari/604.1", agent{chrome, iOS, mobile}},
		{"Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1", agent{safari, iOS, tablet}},
		{"Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0", agent{firefox, linux, desktop}},
		{"Mozilla/5.0 (Linux; Android 14; SM-S928B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0 Mobile Safari/537.36", agent{samsung, android, mobile}},
		{"Mozilla/5.0 (Linux; Android 13; SM-X900) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36", agent{chrome, android, tablet}},
		{"Mozilla/5.0 (Linux; Android 14; V2314A; wv) AppleWebKit/537.36 Version/4.0 Chrome/116.0 Mobile Safari/537.36 MicroMessenger/8.0", agent{weChat, android, mobile}},
		{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", agent{crawlerBrowser, otherSystem, crawler}},
		{"curl/8.5.0", agent{otherBrowser, otherSystem, otherDevice}},
		{"", agent{otherBrowser, otherSystem, otherDevice}},
	}
	for _, test := range tests {
		// The second time it is remembered.
		for range 2 {
			if found := agentOf(test.text); found != test.want {
				t.Errorf("%q: %v, want %v", test.text, found, test.want)
			}
		}
	}
	for i := range 10_000 {
		agentOf(fmt.Sprint("Firefox/", i))
	}
	if found := agentOf("Firefox/1"); found.browser != firefox {
		t.Error(found)
	}
}

// Every fixed count has a name of its own, and all of them leave room for others in a row.
func TestFixedCountsHaveNames(t *testing.T) {
	seen := map[field]bool{otherName: true}
	for at, f := range fixedFields {
		if seen[f] {
			t.Errorf("count %d has no name of its own", at)
		}
		seen[f] = true
	}
	if int(fixedCounts) > maxRowNames/2 {
		t.Errorf("%d of %d", fixedCounts, maxRowNames)
	}
}

func TestAVisitorIsCountedOnceByEach(t *testing.T) {
	c := &counter{}
	c.tallyVisitor(&exchange.Inbound{Major: 2, Header: map[string][]string{"User-Agent": {"Chrome/1 (Windows)"}}})
	taken := map[string]uint64{}
	c.take(func(f field, n uint64) { taken[nameOf(f)] += n })
	for _, name := range []string{"http.2", "tls.none", "browser.chrome", "os.windows", "device.desktop"} {
		if taken[name] != 1 {
			t.Errorf("%s: %d", name, taken[name])
		}
		delete(taken, name)
	}
	if len(taken) > 0 {
		t.Error(taken)
	}
}
