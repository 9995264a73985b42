package waf

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostileBytes is how long hostile bodies are: what a new site has inspected.
const hostileBytes = 128 << 10

// hostileTexts are texts that much in patterns begins to match, or that take their automata through many states.
func hostileTexts() map[string]func() string {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) func() string {
		return func() string { return words[random.IntN(len(words))] }
	}
	return map[string]func() string{
		"letters": func() string { return "aaaaaaaaaaaaaaaa" },
		"noise": func() string {
			return strings.Map(func(r rune) rune {
				if r == '&' || r == '=' || r == '"' || r == '\\' || r == '<' || r == '%' || r == '+' {
					return '~'
				}
				return r
			}, string([]byte{byte(33 + random.IntN(94)), byte(33 + random.IntN(94)), byte(33 + random.IntN(94)), ' '}))
		},
		"sql":     pick("select ", "union ", "from ", "where ", "or ", "and ", "like ", "' ", "1 ", "(", ") ", "-- ", "/*", "*/ ", "having ", "sleep", "@@", "||"),
		"script":  pick("javascript ", "onload ", "alert", "(", ")", "src ", "document", ".", "cookie", "style ", "expression ", "eval", "iframe ", "data:", ";"),
		"shell":   pick("; ", "| ", "$(", "`", "cat ", "w'g'et ", "/bin/", "../", "c:/ ", "powershell ", "nc ", "~", "{", "}", "if ", "do ", "\n"),
		"php":     pick("$_", "GET", "[", "]", "base64_decode", "(", ")", "phpinfo ", "system ", "${", "}", "O:8:", "a:1:", "<?", "chr(", ".", ";"),
		"quotes":  pick("'", "`", "(", ")", " ", "'", "or", "1"),
		"spaces":  pick(" ", "\t", " a", "\n"),
		"escapes": pick(`\u{`, `\x`, `\`, "&#", "%u", `\1`),
		"strings": pick("''", `""`, `\'`, "''a", "x"),
		"slashes": pick("/", ".", "..", "/.", "etc", "%2e"),
	}
}

// hostileShapes are the ways of bodies to hold a text, by their content types.
var hostileShapes = []struct {
	name, contentType string
	body              func(text func(bytes int) string) string
}{
	{"form of one field", "application/x-www-form-urlencoded", func(text func(int) string) string {
		return "q=" + formText(text(hostileBytes))
	}},
	{"form of 256 fields", "application/x-www-form-urlencoded", func(text func(int) string) string {
		return repeated(func(i int) string { return fmt.Sprintf("f%d=%s&", i, formText(text(500))) })
	}},
	{"form of short fields", "application/x-www-form-urlencoded", func(text func(int) string) string {
		return repeated(func(i int) string { return fmt.Sprintf("%d=%s&", i, formText(text(4))) })
	}},
	{"JSON of one string", "application/json", func(text func(int) string) string {
		return `{"q":` + jsonText(text(hostileBytes)) + `}`
	}},
	{"JSON of 256 strings", "application/json", func(text func(int) string) string {
		return "[" + repeated(func(int) string { return jsonText(text(500)) + "," })
	}},
	{"JSON of short strings", "application/json", func(text func(int) string) string {
		return "[" + repeated(func(int) string { return jsonText(text(4)) + "," })
	}},
	{"JSON of names in one another", "application/json", func(text func(int) string) string {
		return repeated(func(int) string { return "{" + jsonText(text(16)) + ":" })
	}},
	{"multipart of 256 fields", "multipart/form-data; boundary=b", func(text func(int) string) string {
		return repeated(func(i int) string {
			return fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=\"f%d\"\r\n\r\n%s\r\n", i, text(450))
		}) + "\r\n--b--\r\n"
	}},
	{"XML of short texts", "text/xml", func(text func(int) string) string {
		return "<a>" + repeated(func(int) string {
			return `<b c="1">` + strings.NewReplacer("<", "(", "&", "+").Replace(text(16)) + "</b>"
		})
	}},
	{"text of no known type", "application/octet-stream", func(text func(int) string) string { return text(hostileBytes) }},
}

func repeated(piece func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < hostileBytes; i++ {
		b.WriteString(piece(i))
	}
	return b.String()[:hostileBytes]
}

func formText(text string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", "=", "%3D", "+", "%2B", " ", "+").Replace(text)
}

func jsonText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text) + `"`
}

// used is the processor time of the process in milliseconds, that of collecting garbage included.
func used(b *testing.B) float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6
}

// What a body of 128 KiB may cost that was made to be expensive: processor time of inspections, however they end.
func BenchmarkHostileBody(b *testing.B) {
	e := component.Of(sharedCore())
	s := settingsOf(b, asIs)
	texts := hostileTexts()
	for _, shape := range hostileShapes {
		for name, word := range texts {
			body := shape.body(func(bytes int) string {
				var text strings.Builder
				for text.Len() < bytes {
					text.WriteString(word())
				}
				return text.String()[:bytes]
			})
			body = body[:min(len(body), hostileBytes)]
			b.Run(shape.name+"/"+name, func(b *testing.B) {
				runtime.GC()
				begun := used(b)
				for b.Loop() {
					x := asked("POST", "/", body, "Content-Type: "+shape.contentType)
					looked, err := e.look(x, s)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := e.run(x, s, looked); err != nil && err != errTime {
						b.Fatal(err)
					}
					x.Reset()
				}
				b.ReportMetric((used(b)-begun)/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
