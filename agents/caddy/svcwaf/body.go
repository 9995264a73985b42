package svcwaf

import (
	stdjson "encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/corazawaf/coraza/v3/collection"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// How a body is read.
const (
	bodyForm      = "URLENCODED"
	bodyMultipart = "MULTIPART"
	bodyJSON      = "JSON"
	bodyXML       = "XML"
	// Nothing is known of it: rules see it as it is, and no form is made of it. JSON is read as such, too.
	bodyRaw = ""
)

// bodyKind says how a body of a type is read.
func bodyKind(contentType string) string {
	name := strings.ToLower(strings.TrimSpace(contentType))
	switch {
	case strings.HasPrefix(name, "application/x-www-form-urlencoded"):
		return bodyForm
	case strings.HasPrefix(name, "multipart/form-data"):
		return bodyMultipart
	case strings.HasPrefix(name, "application/json"), strings.HasPrefix(name, "text/json"), strings.HasPrefix(name, "application/csp-report"):
		return bodyJSON
	}
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimSpace(name)
	switch {
	case strings.HasSuffix(name, "+json"):
		return bodyJSON
	case strings.HasSuffix(name, "/xml"), strings.HasSuffix(name, "+xml"):
		return bodyXML
	}
	return bodyRaw
}

// isGraphQL reports whether a body is one document of GraphQL.
func isGraphQL(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(name), "application/graphql")
}

// isReport reports whether a body is what browsers send where a page did what its policy forbids.
func isReport(contentType string) bool {
	name, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	name = strings.TrimSpace(name)
	return name == "application/csp-report" || name == "application/reports+json"
}

// readBody fills what rules read of a body. Whole says that the body has no more than what is read here. A mistake in the
// body is no error of it: rules weigh it.
func readBody(kind, contentType string, in io.Reader, whole bool, to plugintypes.TransactionVariables) error {
	failing := &failingReader{in: in}
	post := &arguments{add: to.ArgsPost().Add}
	var mistake error
	switch kind {
	case bodyForm, bodyRaw:
		text, err := readText(failing)
		if err != nil {
			return err
		}
		if kind == bodyForm {
			readPairs(text, post)
			post.end()
		} else if isJSON(text, whole) {
			_ = readJSON(strings.NewReader(text), whole, post)
		} else if isGraphQL(contentType) {
			post.put("query", text)
		}
		set(to.RequestBody(), text)
		set(to.RequestBodyLength(), strconv.Itoa(len(text)))
	case bodyMultipart:
		mistake = readMultipart(failing, contentType, whole, to, post)
	case bodyJSON:
		post.report = isReport(contentType)
		mistake = readJSON(failing, whole, post)
	case bodyXML:
		texts := &arguments{add: func(_, v string) { to.RequestXML().Add("/*", v) }}
		values := &arguments{add: func(_, v string) { to.RequestXML().Add("//@*", v) }}
		mistake = readXML(failing, whole, texts, values)
	}
	if failing.err != nil {
		return failing.err
	}
	if mistake != nil {
		set(to.RequestBodyError(), "1")
		set(to.RequestBodyErrorMsg(), mistake.Error())
		set(to.RequestBodyProcessorError(), "1")
		set(to.RequestBodyProcessorErrorMsg(), mistake.Error())
	}
	if !whole {
		set(to.InboundDataError(), "1")
	}
	return nil
}

// isJSON reports whether a text of an unknown type is objects or arrays, one or several: programs take them for what they
// are, whatever type they have.
func isJSON(text string, whole bool) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" || text[0] != '{' && text[0] != '[' {
		return false
	}
	if !whole {
		return true
	}
	for d := stdjson.NewDecoder(strings.NewReader(text)); ; {
		var document stdjson.RawMessage
		if err := d.Decode(&document); err != nil {
			return err == io.EOF
		}
	}
}

func readText(in io.Reader) (string, error) {
	var text strings.Builder
	_, err := io.Copy(&text, in)
	return text.String(), err
}

// failingReader remembers a failure to read, which no mistake in the body may hide.
type failingReader struct {
	in  io.Reader
	err error
}

func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// set gives a variable of one value its value; its interface can only be read.
func set(v collection.Collection, value string) { v.(interface{ Set(string) }).Set(value) }
