package waf

import (
	"io"
	"strconv"
	"strings"

	"edge.svc/caddy/features/waf/bodies"
)

// readBody fills what rules read of a body. A mistake in the body is no error of it: rules weigh it.
func (o *rounds) readBody() error {
	post := &bodies.Arguments{Add: o.addPost}
	contentType, whole := o.x.In.Header.Get("Content-Type"), o.body.whole
	var mistake error
	switch o.kind {
	case bodies.Form:
		o.readText(func(text string, part bool) { bodies.ReadForm(text, part, post) })
		post.End()
	case bodies.Raw:
		o.readRaw(contentType, post)
	case bodies.Multipart:
		mistake = bodies.ReadMultipart(o, contentType, whole, o.room, post)
	case bodies.JSON:
		post.Report = bodies.IsReport(contentType)
		mistake = bodies.ReadJSON(o, whole, post)
	case bodies.XML:
		mistake = bodies.ReadXML(o, whole, o.xml("/*"), o.xml("//@*"))
	}
	if o.err != nil {
		return o.err
	}
	if mistake != nil {
		bodies.Set(o.vars.RequestBodyError(), "1")
		bodies.Set(o.vars.RequestBodyErrorMsg(), mistake.Error())
		bodies.Set(o.vars.RequestBodyProcessorError(), "1")
		bodies.Set(o.vars.RequestBodyProcessorErrorMsg(), mistake.Error())
	}
	if !whole {
		bodies.Set(o.vars.InboundDataError(), "1")
	}
	if o.packed != nil {
		return o.readPacked()
	}
	return nil
}

// addPost takes an argument of the body.
func (o *rounds) addPost(name, value string) {
	if to := o.room(len(name) + len(value)); to != nil {
		to.ArgsPost().Add(name, value)
	}
}

// xml takes texts of XML under a name.
func (o *rounds) xml(name string) *bodies.Arguments {
	return &bodies.Arguments{Add: func(_, value string) {
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
		n, err := io.Copy(text, io.LimitReader(o, int64(bodies.MaxValue+1-text.Len())))
		if err != nil {
			return
		}
		length += int(n)
		piece, more := text.String(), text.Len() > bodies.MaxValue
		rest := len(piece)
		if more {
			rest = bodies.MaxValue - bodies.ValueOverlap
			piece = piece[:bodies.MaxValue]
			if at := strings.LastIndexByte(piece, '&'); o.kind == bodies.Form && at >= 0 {
				piece, rest = piece[:at], at+1
			}
		}
		if kept = text.String()[rest:]; o.bytes > 0 {
			o.next()
		}
		if o.room(len(piece)) == nil {
			return
		}
		bodies.Set(o.vars.RequestBody(), piece)
		bodies.Set(o.vars.RequestBodyLength(), strconv.Itoa(length))
		// Fields are the same bytes.
		o.bytes = 1
		take(piece, part)
		if part = more && rest == bodies.MaxValue-bodies.ValueOverlap; !more {
			return
		}
	}
}

// readRaw takes a body of no known type.
func (o *rounds) readRaw(contentType string, post *bodies.Arguments) {
	first, pieces := "", 0
	o.readText(func(text string, _ bool) {
		if pieces++; pieces == 1 {
			first = text
		}
		if bodies.IsGraphQL(contentType) {
			post.Put("query", text)
		}
	})
	post.End()
	if o.err != nil {
		return
	}
	if pieces == 1 {
		if bodies.IsJSON(first, o.body.whole) {
			_ = bodies.ReadJSON(strings.NewReader(first), o.body.whole, post)
		}
		return
	}
	if !bodies.BeginsLikeJSON(first) || !o.again() {
		return
	}
	if o.body.whole {
		// Programs take several documents, too.
		valid := bodies.ReadDocuments(o)
		if o.err != nil || !valid || !o.again() {
			return
		}
	}
	_ = bodies.ReadJSON(o, o.body.whole, post)
}

// again goes back to the beginning of the body.
func (o *rounds) again() bool {
	if _, err := o.body.in.Seek(0, io.SeekStart); err != nil {
		o.err = err
	}
	return o.err == nil
}
