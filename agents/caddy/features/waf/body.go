package waf

import (
	stdjson "encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/corazawaf/coraza/v3/collection"
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

// readBody fills what rules read of a body. A mistake in the body is no error of it: rules weigh it.
func (o *rounds) readBody() error {
	post := &arguments{add: func(name, value string) {
		if to := o.room(len(name) + len(value)); to != nil {
			to.ArgsPost().Add(name, value)
		}
	}}
	contentType, whole := o.x.In.Header.Get("Content-Type"), o.body.whole
	var mistake error
	switch o.kind {
	case bodyForm:
		o.readText(func(text string, part bool) { readForm(text, part, post) })
		post.end()
	case bodyRaw:
		o.readRaw(contentType, post)
	case bodyMultipart:
		mistake = readMultipart(o, contentType, whole, o.room, post)
	case bodyJSON:
		post.report = isReport(contentType)
		mistake = readJSON(o, whole, post)
	case bodyXML:
		mistake = readXML(o, whole, o.xml("/*"), o.xml("//@*"))
	}
	if o.err != nil {
		return o.err
	}
	if mistake != nil {
		set(o.vars.RequestBodyError(), "1")
		set(o.vars.RequestBodyErrorMsg(), mistake.Error())
		set(o.vars.RequestBodyProcessorError(), "1")
		set(o.vars.RequestBodyProcessorErrorMsg(), mistake.Error())
	}
	if !whole {
		set(o.vars.InboundDataError(), "1")
	}
	return nil
}

// xml takes texts of XML under a name.
func (o *rounds) xml(name string) *arguments {
	return &arguments{add: func(_, value string) {
		if to := o.room(len(value)); to != nil {
			to.RequestXML().Add(name, value)
		}
	}}
}

// readText takes raw text, in pieces of which each has a round of its own: a form is divided between its fields, and whatever
// else is longer says the end of one piece again in the next. Part says that a piece begins in the middle of a field.
func (o *rounds) readText(take func(text string, part bool)) {
	length, part := 0, false
	for kept := ""; ; {
		text := new(strings.Builder)
		text.WriteString(kept)
		n, err := io.Copy(text, io.LimitReader(o, int64(maxValue+1-text.Len())))
		if err != nil {
			return
		}
		length += int(n)
		piece, more := text.String(), text.Len() > maxValue
		rest := len(piece)
		if more {
			rest = maxValue - valueOverlap
			piece = piece[:maxValue]
			if at := strings.LastIndexByte(piece, '&'); o.kind == bodyForm && at >= 0 {
				piece, rest = piece[:at], at+1
			}
		}
		if kept = text.String()[rest:]; o.bytes > 0 {
			o.next()
		}
		if o.room(len(piece)) == nil {
			return
		}
		set(o.vars.RequestBody(), piece)
		set(o.vars.RequestBodyLength(), strconv.Itoa(length))
		// Fields are the same bytes.
		o.bytes = 1
		take(piece, part)
		if part = more && rest == maxValue-valueOverlap; !more {
			return
		}
	}
}

// readForm takes the fields of a piece of a form.
func readForm(text string, part bool, post *arguments) {
	if part {
		var value string
		value, text, _ = strings.Cut(text, "&")
		post.put(post.last, plainWord+unescape(value))
	}
	readPairs(text, post)
}

// readRaw takes a body of no known type.
func (o *rounds) readRaw(contentType string, post *arguments) {
	first, pieces := "", 0
	o.readText(func(text string, _ bool) {
		if pieces++; pieces == 1 {
			first = text
		}
		if isGraphQL(contentType) {
			post.put("query", text)
		}
	})
	post.end()
	if o.err != nil {
		return
	}
	if pieces == 1 {
		if isJSON(first, o.body.whole) {
			_ = readJSON(strings.NewReader(first), o.body.whole, post)
		}
		return
	}
	if !beginsLikeJSON(first) || !o.again() {
		return
	}
	if o.body.whole {
		// Programs take several documents, too.
		valid := readDocuments(o)
		if o.err != nil || !valid || !o.again() {
			return
		}
	}
	_ = readJSON(o, o.body.whole, post)
}

// again goes back to the beginning of the body.
func (o *rounds) again() bool {
	if _, err := o.body.in.Seek(0, io.SeekStart); err != nil {
		o.err = err
	}
	return o.err == nil
}

func beginsLikeJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[')
}

// isJSON reports whether a text of an unknown type is objects or arrays, one or several: programs take them for what they
// are, whatever type they have.
func isJSON(text string, whole bool) bool {
	if !beginsLikeJSON(text) {
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

// set gives a variable of one value its value; its interface can only be read.
func set(v collection.Collection, value string) { v.(interface{ Set(string) }).Set(value) }
