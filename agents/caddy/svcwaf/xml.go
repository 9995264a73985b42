package svcwaf

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

var errXML = errors.New("not well-formed XML")

// readXML takes the texts and the values of attributes of a body. Whole says that the body has no more.
func readXML(in io.Reader, whole bool, texts, values *arguments) error {
	err := readTokens(in, whole, texts, values)
	texts.end()
	values.end()
	return err
}

func readTokens(in io.Reader, whole bool, texts, values *arguments) error {
	// What a mistake hides from the decoder is read as text, from the piece of the body in which the mistake is.
	seen := &tail{in: in}
	d := xml.NewDecoder(seen)
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	open, any := 0, false
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			if whole && (open != 0 || !any) {
				return errXML
			}
			return nil
		}
		if err != nil {
			var syntax *xml.SyntaxError
			if !whole && errors.As(err, &syntax) && strings.Contains(syntax.Msg, "unexpected EOF") {
				texts.join(string(seen.last))
				return nil
			}
			return errors.Join(errXML, seen.rest(texts))
		}
		switch t := token.(type) {
		case xml.StartElement:
			open, any = open+1, true
			for _, a := range t.Attr {
				values.put("", a.Value)
			}
		case xml.EndElement:
			open--
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				texts.put("", text)
			}
		}
	}
}

// tail remembers the last piece that was read.
type tail struct {
	in   io.Reader
	last []byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if n > 0 {
		t.last = append(t.last[:0], p[:n]...)
	}
	return n, err
}

// rest takes the last piece, and what follows it, as text.
func (t *tail) rest(to *arguments) error {
	to.join(string(t.last))
	buffer := make([]byte, maxJoined)
	for {
		n, err := t.in.Read(buffer)
		to.more(string(buffer[:n]))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
