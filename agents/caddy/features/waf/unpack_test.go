package waf

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// packers make bodies of each content coding.
var packers = map[string]func(w io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		return z
	},
}

func packedBy(coding, text string) string {
	var out bytes.Buffer
	w := packers[coding](&out)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.String()
}

// noise is text that packs to little less than its length.
func noise(n int) string {
	random, out := rand.New(rand.NewPCG(3, 4)), make([]byte, n)
	for i := range out {
		out[i] = "abcdefghijklmnopqrstuvwxyz0123456789     "[random.IntN(41)]
	}
	return string(out)
}

const (
	restrictedHeader   = 920450
	patternTimeOfTests = maxPatternTime * time.Millisecond
)

// What a body was packed of is inspected like a body that was not packed, in each kind of body.
func TestPackedBodiesAreInspected(t *testing.T) {
	s := settingsOf(t, asIs)
	for coding := range packers {
		for contentType, body := range map[string]string{
			form:                                "author=Anna&text=@",
			json:                                `{"title":"Notes","text":"@"}`,
			multipartB:                          "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n@\r\n--b--\r\n",
			"Content-Type: text/xml":            "<a><b>@</b></a>",
			"Content-Type: text/plain":          `[{"text":"@"}]`,
			"Content-Type: application/graphql": `query { post(text: "@") { id } }`,
		} {
			for text, attack := range map[string]bool{"Thank you for the report, we will look at it": false, sqli: true, "<script>alert(1)</script>": true} {
				if strings.Contains(contentType, "form-urlencoded") {
					text = url.QueryEscape(text)
				}
				content := packedBy(coding, strings.ReplaceAll(body, "@", text))
				v := judge(t, s, asked("POST", "/", content, contentType, "Content-Encoding: "+strings.ToUpper(coding)), content)
				if coding == "zstd" && contentType == multipartB {
					// This encoder left the borders as they are, so that two readers find parts.
					if !v.unread || v.score < s.threshold {
						t.Errorf("borders in packed data: %+v", v)
					}
					continue
				}
				if (v.score >= s.threshold) != attack || v.unread || slices.Contains(v.rules, restrictedHeader) || !attack && v.score > 0 {
					t.Errorf("%s, %s, %q: %+v", coding, contentType, text, v)
				}
			}
		}
	}
}

// gzipWithComment is a body in the format of gzip with a comment, which is no content.
func gzipWithComment(comment, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Comment = comment
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.String()
}

// A body of which nobody knows the content is refused as any packed body was before, and counted.
func TestPackedBodiesThatCannotBeRead(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.RequestBodyLimit = 1 << 20 })
	ordinary := `{"text":"` + noise(5000) + `"}`
	pack := func(text string) string { return packedBy("gzip", text) }
	raw := func() string {
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 6)
		_, _ = io.WriteString(w, ordinary)
		_ = w.Close()
		return out.String()
	}()
	window := func() string {
		var out bytes.Buffer
		w := brotli.NewWriterOptions(&out, brotli.WriterOptions{Quality: 5, LGWin: 24})
		_, _ = io.WriteString(w, ordinary)
		_ = w.Close()
		return out.String()
	}()
	wrong := []byte(pack(ordinary))
	wrong[len(wrong)-5] ^= 1
	// As deflate without a head, these are eight stored bytes.
	twoWays := "\x08\x1d\x00\xe2\xff" + noise(40)
	for name, c := range map[string]struct{ codings, body string }{
		"two codings":              {"gzip, br", packedBy("br", pack(ordinary))},
		"one coding twice":         {"gzip,gzip", pack(pack(ordinary))},
		"an unknown coding":        {"compress", "\x1f\x9d\x90"},
		"no packed data":           {"gzip", ordinary},
		"cut in its middle":        {"gzip", pack(ordinary)[:2000]},
		"cut at its end":           {"gzip", pack(ordinary)[:len(pack(ordinary))-1]},
		"a wrong checksum":         {"gzip", string(wrong)},
		"something after the end":  {"gzip", pack(ordinary) + "&a=b"},
		"after the end of zlib":    {"deflate", packedBy("deflate", ordinary) + "x"},
		"after the end of brotli":  {"br", packedBy("br", ordinary) + "x"},
		"after the end of zstd":    {"zstd", packedBy("zstd", ordinary) + "x"},
		"brotli cut":               {"br", packedBy("br", ordinary)[:2000]},
		"zstd cut":                 {"zstd", packedBy("zstd", ordinary)[:2000]},
		"zlib cut":                 {"deflate", packedBy("deflate", ordinary)[:2000]},
		"deflate without its head": {"deflate", raw},
		"deflate in two ways":      {"deflate", twoWays},
		"a window of 16 MiB":       {"br", window},
		"a bomb of gzip":           {"gzip", pack(strings.Repeat("a", 50<<20))},
		"a bomb of brotli":         {"br", packedBy("br", strings.Repeat("a", 50<<20))},
		"a bomb of zstd":           {"zstd", packedBy("zstd", strings.Repeat("a", 50<<20))},
		"a bomb of zlib":           {"deflate", packedBy("deflate", strings.Repeat("a", 50<<20))},
		"a bomb in a bomb":         {"gzip", pack(pack(strings.Repeat("a", 50<<20)) + strings.Repeat("b", 1<<20))},
		"only a beginning":         {"br", "\x1b"},
	} {
		v := judge(t, s, asked("POST", "/", c.body, json, "Content-Encoding: "+c.codings), c.body)
		if !slices.Contains(v.rules, restrictedHeader) || v.score < s.threshold || !v.unread {
			t.Errorf("%s: %+v", name, v)
		}
	}
	x := asked("POST", "/", ordinary, json, "Content-Encoding: gzip", "Content-Encoding: gzip")
	if v := judge(t, s, x, pack(pack(ordinary))); !slices.Contains(v.rules, restrictedHeader) || !v.unread {
		t.Errorf("two fields: %+v", v)
	}
	if held := component.Of(sharedCore()).room; held.Memory.Held() != 0 || held.Files.Held() != 0 {
		t.Error("room is held")
	}
}

// An origin that knows of no codings takes the packed bytes for the body.
func TestPackedBodiesAreReadAsTheyAre(t *testing.T) {
	s := settingsOf(t, asIs)
	attack := "&q=" + url.QueryEscape("<script>alert(1)</script>") + "&b="
	skipped := "\x50\x2a\x4d\x18" + string([]byte{byte(len(attack)), 0, 0, 0}) + attack
	for name, c := range map[string]struct {
		coding, contentType, body string
		attack                    bool
	}{
		"a comment of gzip":          {"gzip", form, gzipWithComment(attack, "a=1"), true},
		"an ordinary comment":        {"gzip", form, gzipWithComment("notes.txt", "a=1"), false},
		"a frame of zstd to skip":    {"zstd", form, skipped + packedBy("zstd", "a=1"), true},
		"brotli as usual":            {"br", form, packedBy("br", "a=1"), false},
		"a comment beside multipart": {"gzip", multipartB, gzipWithComment("\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx", "--b--\r\n"), true},
		"a comment as text":          {"gzip", "Content-Type: text/plain", gzipWithComment("java.lang.ProcessBuilder", "a=1"), true},
		"a document of JSON":         {"gzip", json, gzipWithComment("{}", `{"a":1}`), false},
	} {
		if v := judge(t, s, asked("POST", "/", c.body, c.contentType, "Content-Encoding: "+c.coding), c.body); (v.score >= s.threshold) != c.attack {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Ordinary packed forms have bytes of all kinds in them, and are no attack for that.
func TestPackedNoiseIsNoAttack(t *testing.T) {
	s := settingsOf(t, asIs)
	refused := 0
	const tries = 100
	for i := range tries {
		for _, coding := range []string{"gzip", "br", "zstd"} {
			body := packedBy(coding, "n="+noise(200 + i*97)[i:])
			if v := judge(t, s, asked("POST", "/", body, form, "Content-Encoding: "+coding), body); v.score > 0 {
				refused++
				t.Logf("%s, %d bytes: %v", coding, len(body), v)
			}
		}
	}
	if refused > tries*3/50 {
		t.Errorf("%d of %d", refused, 3*tries)
	}
}

// The content is inspected up to the limit of the site, as that of any body is.
func TestPackedBodiesBeyondTheLimit(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.RequestBodyLimit = 256 << 10 })
	before, after := "a="+noise(100<<10), noise(300<<10)
	attack := "&q=" + url.QueryEscape(sqli) + "&r="
	for coding := range packers {
		for text, found := range map[string]bool{before + attack + after: true, before + after + attack: false, attack + after + after + after: true} {
			e := newEngine(t)
			x := asked("POST", "/", packedBy(coding, text), form, "Content-Encoding: "+coding)
			looked, err := e.look(x, s)
			if err != nil {
				t.Fatal(err)
			}
			v, err := e.run(x, s, looked)
			if err != nil || byContentOf(v) != found || v.unread {
				t.Errorf("%s, %d bytes: %+v, %v", coding, len(text), v, err)
			}
			x.Reset()
			if e.room.Memory.Held() != 0 || e.room.Files.Held() != 0 {
				t.Errorf("%s: room is held", coding)
			}
		}
	}
}

func byContentOf(v verdict) bool {
	return slices.ContainsFunc(v.rules, func(id int) bool { return id/rulesInFamily == 942 })
}

// The origin gets the bytes that came, whatever was read of them; what found no room does not pass where attacks are blocked.
func TestOriginsGetPackedBodiesAsTheyCame(t *testing.T) {
	for _, mode := range []configv1.WafMode{configv1.WafMode_WAF_MODE_BLOCK, configv1.WafMode_WAF_MODE_DETECT} {
		s := settingsOf(t, func(m *configv1.SiteWaf) { m.Mode, m.RequestBodyLimit = mode, 1<<20 })
		for name, c := range map[string]struct {
			body       string
			room       int64
			status     int
			uninspects bool
		}{
			"ordinary":   {packedBy("gzip", "a="+noise(400<<10)), 1 << 20, 0, false},
			"in a file":  {packedBy("gzip", "a="+noise(400<<10)), 0, 0, false},
			"an attack":  {packedBy("gzip", "q="+url.QueryEscape(sqli)), 1 << 20, http.StatusForbidden, false},
			"wrong data": {"a=1", 1 << 20, http.StatusForbidden, true},
			"no room":    {packedBy("gzip", "a="+noise(200<<10)), -1, http.StatusServiceUnavailable, false},
		} {
			e := newEngine(t)
			if e.room.Memory.Most = c.room; c.room < 0 {
				// For what came, and not for what it was packed of.
				e.room.Memory.Most, e.room.Files.Most = 0, int64(len(c.body))+1000
			}
			x := asked("POST", "/", c.body, form, "Content-Encoding: gzip")
			a := e.stage(x, s)
			marks := x.TakeMarks()
			if refused := s.block && c.status != 0; refused != (a != nil) || refused && a.Status != c.status || slices.Contains(marks, countUninspected) != c.uninspects {
				t.Errorf("%s, %v: %+v, %v", name, mode, a, marks)
			}
			if got, err := io.ReadAll(&x.Body); string(got) != c.body || err != nil {
				t.Errorf("%s, %v: the origin gets %d of %d bytes, %v", name, mode, len(got), len(c.body), err)
			}
			x.Reset()
			if e.room.Memory.Held() != 0 || e.room.Files.Held() != 0 {
				t.Errorf("%s, %v: room is held", name, mode)
			}
		}
	}
}

// limitless is room for everything.
type limitless struct{ files int }

func (l *limitless) Take(int) bool                     { return true }
func (l *limitless) Give(int)                          {}
func (l *limitless) File() (exchange.SpoolFile, error) { l.files++; return nil, errors.New("no files") }

// FuzzUnpack looks for content that is more than it may be, and for content that other readers do not find.
func FuzzUnpack(f *testing.F) {
	for coding := range packers {
		f.Add(coding, packedBy(coding, "a=1&b="+noise(300)), true)
		f.Add(coding, packedBy(coding, strings.Repeat("a", 10_000)), true)
		f.Add(coding, packedBy(coding, "a=1&b="+noise(300))[:100], false)
	}
	const limit = 4096
	s := settingsOf(f, func(m *configv1.SiteWaf) { m.RequestBodyLimit = limit })
	f.Fuzz(func(t *testing.T, coding, body string, whole bool) {
		x := asked("POST", "/", body, form, "Content-Encoding: "+coding)
		defer x.Reset()
		name, _ := codingOf(x)
		if name == "" || body == "" {
			return
		}
		b := takeBudget(patternTimeOfTests)
		defer b.giveBack()
		o := &rounds{x: x, s: s, body: look{strings.NewReader(body), whole, &limitless{}}, budget: b}
		err := o.unpack(name)
		if err != nil {
			if err != errPacked {
				t.Fatal(err)
			}
			return
		}
		content, _ := io.ReadAll(o.body.in)
		if len(content) > min(limit, maxRatio*len(body)) || o.body.whole && !whole {
			t.Fatalf("%d bytes of %d", len(content), len(body))
		}
		if name != "gzip" && name != "x-gzip" {
			return
		}
		other, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(io.LimitReader(other, limit+1))
		if whole && err != nil || !bytes.HasPrefix(all, content) || o.body.whole && len(all) != len(content) {
			t.Errorf("%d and %d bytes, %v", len(all), len(content), err)
		}
	})
}
