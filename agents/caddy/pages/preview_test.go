package pages

import (
	"bytes"
	encoding "encoding/json"
	"os"
	"testing"
)

const previewFile = "../../../contract/node-pages.json"

// previewed is a page of the node as the console shows it, with the placeholder of a template for the request id.
type previewed struct {
	Status  int    `json:"status"`
	Chinese string `json:"zh-CN"`
	English string `json:"en"`
}

// Of each status the page that visitors meet most.
var previews = map[string]int{
	BadRequest: 400, PolicyDenied: 403, NotFound: 404, MethodNotAllowed: 405, InternalError: 500, OriginUnreachable: 502, OriginBusy: 503,
	OriginTimeout: 504, UnknownHost: 404, SiteDisabled: 503, Maintenance: 503,
}

func previewPages() ([]byte, error) {
	of := func(code string, status int) previewed {
		html := func(language int) string {
			return string(appendPage(nil, status, code, language, "{{request_id}}"))
		}
		return previewed{status, html(chinese), html(english)}
	}
	all := map[string]previewed{"too-many-requests": of(PolicyDenied, 429)}
	for code, status := range previews {
		all[code] = of(code, status)
	}
	var written bytes.Buffer
	encoder := encoding.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(all)
	return written.Bytes(), err
}

// The console previews the pages of the node. SVC_WRITE_PAGES=1 writes the file again, after a change of a page.
func TestTheContractHasThePagesOfTheNode(t *testing.T) {
	want, err := previewPages()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SVC_WRITE_PAGES") == "1" {
		if err := os.WriteFile(previewFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(previewFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not of these pages: run this test with SVC_WRITE_PAGES=1", previewFile)
	}
}
