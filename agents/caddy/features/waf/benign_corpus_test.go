//go:build !race

// Inspections beside each other are seen by the race detector in mixed_test.go.

package waf

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"html"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/simplifiedchinese"

	stdjson "encoding/json"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/exchangetest"
)

// The corpus is made of requests in testdata/benign/requests, each with how many are made of it, and of lists of what is
// written into them: a line of a .txt, or what stands between lines of "%%" in .blocks, is one value.
//
//	{{list}}       any value of a list
//	{{list|code}}  the same, encoded: see encodings
//	{{hex:8}}      something made up: see corpus.made
//	{{=}}          in a body: what was made up last in the head
//	@name          a line of the head: see corpus.headers
//
// What is taken follows from the name of the request and its number: the same in each run.
const benignFolder = "testdata/benign"

// benignRequest is one request of the corpus.
type benignRequest struct {
	name, head, body string
}

func (r *benignRequest) exchange(t *testing.T) *exchange.Exchange {
	t.Helper()
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(r.head + "\r\n" + r.body)))
	if err != nil {
		t.Fatalf("%s: %v in %q", r.name, err, r.head)
	}
	parsed.RemoteAddr = "203.0.113.7:40000"
	return exchangetest.New(httptest.NewRecorder(), parsed)
}

// corpus makes requests.
type corpus struct {
	lists  map[string][]string
	random *rand.Rand
	// What was made up last.
	last string
	err  error
}

// benignRequests makes the whole corpus, each request once.
func benignRequests(t *testing.T) (all []benignRequest) {
	t.Helper()
	c := &corpus{lists: map[string][]string{}}
	for _, f := range filesIn(t, "lists") {
		list, kind, _ := strings.Cut(f.name, ".")
		separator := "\n"
		if kind == "blocks" {
			separator = "\n%%\n"
		}
		c.lists[list] = strings.Split(strings.TrimSuffix(f.content, "\n"), separator)
	}
	known := map[string]bool{}
	for _, f := range filesIn(t, "requests") {
		for _, template := range strings.Split("\n"+f.content, "\n### ")[1:] {
			title, text, _ := strings.Cut(strings.TrimRight(template, "\n"), "\n")
			name, count, _ := strings.Cut(title, " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatalf("%s: %s has no number", f.name, title)
			}
			for i := range n {
				if r := c.request(name, i, text); !known[r.head+r.body] {
					known[r.head+r.body] = true
					all = append(all, r)
				}
			}
		}
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	return all
}

type benignFile struct{ name, content string }

func filesIn(t *testing.T, folder string) (all []benignFile) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(benignFolder, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(benignFolder, folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, benignFile{e.Name(), string(content)})
	}
	return all
}

func (c *corpus) request(name string, number int, text string) benignRequest {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name))
	c.random = rand.New(rand.NewPCG(seed.Sum64(), uint64(number)))
	head, body, hasBody := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	made := []string{c.expand(lines[0]) + " HTTP/1.1", "Host: www.example.com"}
	for _, line := range lines[1:] {
		if kind, found := strings.CutPrefix(line, "@"); found {
			made = append(made, c.headers(kind)...)
		} else {
			made = append(made, c.expand(line))
		}
	}
	if hasBody {
		if strings.Contains(head, "multipart/") {
			// Lines end as they do on the wire; a value stays as it is.
			body = strings.ReplaceAll(body, "\n", "\r\n") + "\r\n"
		}
		body = c.expand(strings.ReplaceAll(body, "{{=}}", c.last))
		made = append(made, "Content-Length: "+strconv.Itoa(len(body)))
	}
	return benignRequest{fmt.Sprintf("%s %d", name, number), strings.Join(made, "\r\n") + "\r\n", body}
}

// headers are fields that all programs of a kind send: browser and tool their own; visitor is a browser that was here
// before; xhr is a script of a page.
func (c *corpus) headers(kind string) []string {
	switch kind {
	case "tool":
		return strings.Split(c.pick("tool"), "\n")
	case "xhr":
		return append(c.headers("visitor"), "Accept: application/json, text/plain, */*", "Origin: https://www.example.com",
			"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty")
	}
	made := strings.Split(c.pick("browser"), "\n")
	if c.random.IntN(3) > 0 {
		made = append(made, "Cookie: "+c.pick("cookies"))
	}
	if c.random.IntN(2) > 0 {
		made = append(made, "Referer: "+c.pick("urls"))
	}
	return made
}

func (c *corpus) pick(list string) string {
	values := c.lists[list]
	if len(values) == 0 {
		c.err = fmt.Errorf("no list %q", list)
		return ""
	}
	return values[c.random.IntN(len(values))]
}

// expand writes values into a text.
func (c *corpus) expand(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}}")
		// Of JSON.
		for strings.HasPrefix(name, "{") {
			b.WriteByte('{')
			name = name[1:]
		}
		b.WriteString(c.value(name))
		text = after
	}
}

func (c *corpus) value(name string) string {
	list, code, encoded := strings.Cut(name, "|")
	if list == "email" {
		list = "emails"
	}
	if encoded {
		encode := encodings[code]
		if encode == nil {
			c.err = fmt.Errorf("no encoding %q", code)
			return ""
		}
		return encode(c.pick(list))
	}
	what, size, _ := strings.Cut(name, ":")
	if text, found := c.made(what, size); found {
		c.last = text
		return text
	}
	return c.pick(name)
}

var encodings = map[string]func(string) string{
	"q": url.QueryEscape,
	"p": url.PathEscape,
	"x": html.EscapeString,
	"j": func(text string) string {
		quoted, _ := stdjson.Marshal(text)
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted[1 : len(quoted)-1]))
	},
	"ju": func(text string) string {
		quoted, _ := stdjson.Marshal(text)
		return unicodeEscapes(string(quoted[1:len(quoted)-1]), `\u`)
	},
	"uni": func(text string) string { return strings.ReplaceAll(unicodeEscapes(text, "%u"), " ", "%20") },
	"gbk": func(text string) string {
		encoded, err := simplifiedchinese.GBK.NewEncoder().String(text)
		if err != nil {
			// As browsers do.
			encoded = unicodeEscapes(text, "&#x")
		}
		return url.QueryEscape(encoded)
	},
	"b64q": func(text string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))) },
	// The name of a file in a form.
	"f": func(text string) string { return strings.NewReplacer(`"`, "%22", "\n", "%0A").Replace(text) },
	// What is typed first.
	"prefix": func(text string) string {
		letters := []rune(text)
		return url.QueryEscape(string(letters[:(len(letters)+1)/2]))
	},
	"nopairs": func(text string) string {
		path, _, _ := strings.Cut(text, "?")
		return path
	},
}

func unicodeEscapes(text, mark string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < 0x80 {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, "%s%04x", mark, unit)
		}
	}
	return b.String()
}

// made is what programs make up.
func (c *corpus) made(what, size string) (text string, found bool) {
	switch what {
	case "hex":
		return fmt.Sprintf("%x", c.bytes(size))[:number(size)], true
	case "int":
		return strconv.Itoa(1 + c.random.IntN(number(size))), true
	case "ms":
		return strconv.Itoa(1_775_000_000_000 + c.random.IntN(1e9)), true
	case "b64":
		return base64.StdEncoding.EncodeToString(c.bytes(size)), true
	case "b64u":
		return base64.RawURLEncoding.EncodeToString(c.bytes(size)), true
	case "b64q":
		return url.QueryEscape(base64.StdEncoding.EncodeToString(c.bytes(size))), true
	case "uuid":
		b := c.bytes("16")
		return fmt.Sprintf("%x-%x-4%x-a%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), true
	case "jwt":
		claims := fmt.Sprintf(`{"sub":"%d","name":%q,"iat":1775000000,"scope":"read write"}`, c.random.IntN(9999), c.pick("names"))
		return "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." +
			base64.RawURLEncoding.EncodeToString(c.bytes("256")), true
	case "bytes":
		kind, size, _ := strings.Cut(size, ":")
		return beginnings[kind] + string(c.bytes(size)), true
	case "rows":
		rows := make([]string, number(size))
		for i := range rows {
			rows[i] = c.expand(row)
		}
		return strings.Join(rows, ",\n"), true
	}
	return "", false
}

// row is one of a table.
const row = `{"id":{{int:99999}},"name":"{{names|j}}","address":"{{addresses|j}}","item":"{{products|j}}","note":"{{comments-en|j}}","tags":["{{words|j}}"] }`

// beginnings are those of files.
var beginnings = map[string]string{
	"jpg": "\xff\xd8\xff\xe0\x00\x10JFIF\x00", "png": "\x89PNG\r\n\x1a\n", "zip": "PK\x03\x04\x14\x00", "pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
}

func (c *corpus) bytes(size string) []byte {
	b := make([]byte, number(size))
	for i := range b {
		b[i] = byte(c.random.Uint32())
	}
	return b
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
