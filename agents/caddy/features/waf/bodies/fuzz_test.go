package bodies

import (
	stdjson "encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// What is joined is searched for in texts shorter than the pieces overlap.
const shortText = joinedOverlap / 2

// FuzzJSON looks for text of valid JSON that no argument has, and for arguments that are far more than the body.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":"x","b":[1,"y",{"c":null}]}`, `[[["x"`, `{"a":"\ud83d\ude00"}`, `{} {}`, `{"a":x"y"}`, "\ufeff[]", `["\u00`,
		`{"a":{"b":{},"c":[]},"d":[{"e":1}]}`, strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), `{"` + strings.Repeat("n", 1100) + `":{"b":1}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, whole bool) {
		got, err := readsJSON(body, whole)
		if total := totalOf(got); total > 3*len(body)*(maxName+16)+MaxJoined {
			t.Errorf("%d bytes of %d", total, len(body))
		}
		if err != nil && err != errJSON {
			t.Error(err)
		}
		if !whole || !utf8.ValidString(body) || !stdjson.Valid([]byte(body)) {
			return
		}
		if err != nil {
			t.Errorf("valid and refused: %v", err)
		}
		for d := stdjson.NewDecoder(strings.NewReader(body)); ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			if text, ok := token.(string); ok && len(text) < shortText && !got.has(text) && !strings.Contains(strings.Join(got.names, "\n"), text) {
				t.Errorf("%q is nowhere in %v", text, got)
			}
		}
	})
}

// totalOf is how many bytes arguments have.
func totalOf(c *collected) (total int) {
	for i := range c.names {
		total += len(c.names[i]) + len(c.values[i])
	}
	return total
}

// FuzzForm looks for arguments that are more than the body.
func FuzzForm(f *testing.F) {
	f.Add("a=1&b=%27&c")
	f.Add("%u0027+%")
	f.Add(`<p style="top:1px">x<img src="/a"/><!-- wp:b {"c":1} -->`)
	f.Add(`query Q($a: [Int!]) { b(c: $a, d: "e") @f { ...g } } # h`)
	f.Add(strings.Repeat("a=%6e&", 300))
	f.Fuzz(func(t *testing.T, body string) {
		got := new(collected)
		a := &Arguments{Add: got.add}
		ReadPairs(body, a)
		a.End()
		if totalOf(got) > 2*len(body)+MaxJoined {
			t.Errorf("%d bytes of %d", totalOf(got), len(body))
		}
		if text := readMarkup(body); len(text) > len(body) {
			t.Errorf("%q", text)
		}
		if text, ok := graphQLTexts(body); ok && len(text) > len(body) {
			t.Errorf("%q", text)
		}
		if once, _, _ := URLDecodeUni(body); len(once) > len(body)*2 {
			t.Errorf("%q", once)
		}
		if once, _, _ := JSDecode(body); len(once) > len(body) {
			t.Errorf("%q", once)
		}
	})
}

// FuzzXML looks for texts that are far more than the body.
func FuzzXML(f *testing.F) {
	f.Add(`<a b="1">x<![CDATA[z]]></a>`, true)
	f.Add(`<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, false)
	f.Add(`<?xml version="1.0" encoding="utf-7"?><a>x<!-- y -->z</a>`, true)
	f.Fuzz(func(t *testing.T, body string, whole bool) {
		got := new(collected)
		err := ReadXML(strings.NewReader(body), whole, &Arguments{Add: got.add}, &Arguments{Add: got.add})
		if totalOf(got) > 4*len(body)+2*MaxTail {
			t.Errorf("%d bytes of %d", totalOf(got), len(body))
		}
		if err != nil && !strings.Contains(err.Error(), errXML.Error()) {
			t.Error(err)
		}
	})
}

// FuzzMultipart looks for text that is in no field, no name and no file.
func FuzzMultipart(f *testing.F) {
	for _, body := range []string{
		"--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"q\"; filename=\"f\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\n--b\n\r\n--b--\r\nafter",
		"--b\nContent-Disposition: form-data; name=\"a\\\"; filename=\\\"b\"\n\nx\n--b--",
		"--b--\r\n",
		"preamble\r\n--b \r\nContent-Disposition: attachment\r\n\r\n",
	} {
		f.Add(body, "multipart/form-data; boundary=b", true)
		f.Add(body, `multipart/form-data; boundary="b"; boundary=c`, false)
	}
	engine, err := coraza.NewWAF(coraza.NewWAFConfig())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, contentType string, whole bool) {
		tx := engine.NewTransaction()
		defer tx.Close()
		got := new(collected)
		fields := &Arguments{Add: got.add}
		err := ReadMultipart(strings.NewReader(body), contentType, whole, func(int) plugintypes.TransactionVariables {
			return tx.(plugintypes.TransactionState).Variables()
		}, fields)
		if err != nil && !strings.Contains(err.Error(), errMultipart.Error()) {
			t.Error(err)
		}
		if totalOf(got) > 4*len(body)+2*MaxTail {
			t.Errorf("%d bytes of %d", totalOf(got), len(body))
		}
	})
}
