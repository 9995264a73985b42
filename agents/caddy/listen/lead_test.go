package listen

import (
	"strings"
	"testing"
)

func TestEmptyLinesBeforeRequestLinesAreTakenOut(t *testing.T) {
	get, put := "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\r\n\r\n\r"
	chunked := "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	for name, c := range map[string]struct{ sent, want string }{
		"nothing to do":             {get + get, get + get},
		"first":                     {"\r\n" + get, get},
		"LF alone":                  {"\n" + get, get},
		"several":                   {"\r\n\n\r\n\r\n" + get, get},
		"after GET":                 {get + "\r\n" + get + "\n" + get, get + get + get},
		"after a body of CR and LF": {put + "\r\n" + get, put + get},
		"after DELETE":              {"DELETE /x HTTP/1.1\nHost: a\n\n\r\n" + get, "DELETE /x HTTP/1.1\nHost: a\n\n" + get},
		"an empty body":             {"PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n" + get, "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n" + get},
		"CR alone is refused":       {"\rGET / HTTP/1.1\r\n\r\n", "\rET / HTTP/1.1\r\n\r\n"},
		"two CR are refused":        {"\r\r\n" + get, "\r\n" + get},
		"a blank is no empty line":  {" \r\n" + get, " \r\n" + get},
		"chunks pass":               {chunked + "\r\n" + get, chunked + "\r\n" + get},
		"an upgrade passes":         {"GET / HTTP/1.1\r\nUPGRADE: websocket\r\n\r\n\r\n\r\n", "GET / HTTP/1.1\r\nUPGRADE: websocket\r\n\r\n\r\n\r\n"},
		"HTTP/2 passes":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\r\n\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\r\n\n"},
		"two lengths pass":          {"PUT / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok\r\n" + get, "PUT / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok\r\n" + get},
		"a folded line passes":      {"PUT / HTTP/1.1\r\nContent-Length:\r\n 2\r\n\r\n\r\n\r\n" + get, "PUT / HTTP/1.1\r\nContent-Length:\r\n 2\r\n\r\n\r\n\r\n" + get},
		"no length passes":          {"PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n\r\n" + get, "PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n\r\n" + get},
		"a blank before the colon":  {"PUT / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n\r\n" + get, "PUT / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n\r\n" + get},
		"a long line":               {"GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\nA: " + strings.Repeat("y", 9000) + "\r\n\r\n\r\n" + get, "GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\nA: " + strings.Repeat("y", 9000) + "\r\n\r\n" + get},
	} {
		// Whole, by the byte, and in two parts at every place.
		for cut := -1; cut < min(len(c.sent), 200); cut++ {
			var l lead
			var got []byte
			pass := func(part string) {
				p := []byte(part)
				got = append(got, p[:l.filter(p)]...)
			}
			if cut < 0 {
				for i := range len(c.sent) {
					pass(c.sent[i : i+1])
				}
			} else {
				pass(c.sent[:cut])
				pass(c.sent[cut:])
			}
			if string(got) != c.want {
				t.Errorf("%s, cut at %d: %.200q, not %.200q", name, cut, got, c.want)
				break
			}
		}
	}
}
