package bodies

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

var (
	errXML        = errors.New("the body is not well-formed XML")
	errXMLCharset = errors.New("the XML has a character encoding that does not contain ASCII")
)

// ReadXML takes the texts and the values of attributes of a body. Whole says that the body has no more.
func ReadXML(in io.Reader, whole bool, texts, values *Arguments) error {
	err := readTokens(in, whole, texts, values)
	texts.End()
	values.End()
	return err
}

func readTokens(in io.Reader, whole bool, texts, values *Arguments) error {
	// What a mistake hides from the decoder is read as text, from the piece of the body in which the mistake is.
	seen := &tail{in: in, longest: maxToken}
	d := xml.NewDecoder(seen)
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	d.CharsetReader = sameBytes
	open, any := 0, false
	// Comments, instructions and CDATA do not end a text: whoever reads the element gets it in one piece.
	var text []byte
	element := func() {
		if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 {
			texts.Put("", string(trimmed))
		}
		text = text[:0]
	}
	defer element()
	for {
		token, err := d.RawToken()
		seen.since = 0
		if err == io.EOF {
			if whole && (open != 0 || !any) {
				return errXML
			}
			return nil
		}
		if errors.Is(err, errToken) {
			return seen.rest(texts)
		}
		if err != nil {
			var syntax *xml.SyntaxError
			if !whole && errors.As(err, &syntax) && strings.Contains(syntax.Msg, "unexpected EOF") {
				texts.Join(string(seen.end()))
				return nil
			}
			return errors.Join(errXML, seen.rest(texts))
		}
		switch t := token.(type) {
		case xml.StartElement:
			element()
			open, any = open+1, true
			for _, a := range t.Attr {
				values.Put("", a.Value)
			}
		case xml.EndElement:
			element()
			open--
		case xml.CharData:
			for text = append(text, t...); len(text) > MaxValue; {
				end := MaxValue - len(plainEnd)
				texts.Put("", string(text[:end])+plainEnd)
				text = append([]byte(plainWord), text[end-ValueOverlap:]...)
			}
		case xml.Directive:
			// Entities stand for text.
			if bytes.IndexByte(t, '[') >= 0 {
				texts.Put("", string(t))
			}
		}
	}
}

// sameBytes reads charsets in which a byte of ASCII at the beginning of a character is that character.
func sameBytes(charset string, in io.Reader) (io.Reader, error) {
	charset = strings.ToLower(charset)
	for _, known := range []string{"us-ascii", "iso-8859-", "windows-125", "gb2312", "gbk", "gb18030", "big5", "euc-", "shift_jis", "koi8-"} {
		if strings.HasPrefix(charset, known) {
			return in, nil
		}
	}
	return nil, errXMLCharset
}

const (
	// More than a decoder has read and not yet used.
	MaxTail = 8 << 10
	// Bytes of one text, name or comment that a decoder takes into memory.
	maxToken = 1 << 20
)

// errToken says that what the decoder is at is too long.
var errToken = errors.New("a part of the document is too long")

// tail remembers the end of what was read.
type tail struct {
	in   io.Reader
	last []byte
	// How much was read since somebody said so, and how much it may be; 0 for any.
	since, longest int
}

func (t *tail) Read(p []byte) (int, error) {
	if t.longest > 0 && t.since > t.longest {
		return 0, errToken
	}
	n, err := t.in.Read(p)
	t.since += n
	t.last = append(t.last, p[:n]...)
	kept := MaxTail
	if t.longest > 0 {
		kept += t.since
	}
	if over := len(t.last) - kept; over > kept {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return n, err
}

// end is what was read last, and everything since.
func (t *tail) end() []byte {
	kept := MaxTail
	if t.longest > 0 {
		kept += t.since
	}
	return t.last[max(0, len(t.last)-kept):]
}

// rest takes the end of what was read, and what follows it, as text.
func (t *tail) rest(to *Arguments) error {
	to.Join(string(t.end()))
	return joinAll(t.in, to)
}

// joinAll takes everything as text.
func joinAll(in io.Reader, to *Arguments) error {
	buffer := make([]byte, MaxJoined)
	for {
		n, err := in.Read(buffer)
		to.more(string(buffer[:n]))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
