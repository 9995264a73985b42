package bodies

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

// apostrophe stands between two letters.
var apostrophe = regexp.MustCompile(`(\pL)'(\pL)`)

var (
	errMultipart = errors.New("the body is not valid multipart data")
	// The inspection goes no further: what gives room says why.
	errNoRoom = errors.New("there is no memory for more of the body")
)

const (
	// Parts of a body of which names and headers are looked at.
	maxParts = 1024
	// Bytes of a field of a part's head; longer ones are joined text.
	maxPartField = 8 << 10
	// Bytes of a boundary (RFC 2046, section 5.1.1).
	maxBoundary = 70
	// How much of a file is looked at at a time; longer than any border.
	filePiece = 32 << 10
)

// parts fills what rules read of a multipart body. Nothing is written to disk: the contents of files are counted and
// forgotten.
type parts struct {
	// room returns what is filled next, with so many bytes; nil where nothing is any more.
	room   func(bytes int) plugintypes.TransactionVariables
	fields *Arguments
	size   int64
	count  int
	strict bool
	// What a line begins with that ends a part.
	border []byte
}

// ReadMultipart takes the parts of a body. Whole says that the body has no more, so that an end in its middle is a
// mistake and not for a limit.
func ReadMultipart(in io.Reader, contentType string, whole bool, room func(bytes int) plugintypes.TransactionVariables, fields *Arguments) error {
	p := &parts{room: room, fields: fields}
	err := p.read(in, contentType, whole)
	fields.End()
	to := room(0)
	if to == nil {
		return err
	}
	if p.strict || err != nil {
		Set(to.MultipartStrictError(), "1")
	}
	Set(to.FilesCombinedSize(), strconv.FormatInt(p.size, 10))
	return err
}

func (p *parts) read(in io.Reader, contentType string, whole bool) error {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" || len(params["boundary"]) > maxBoundary {
		return p.salvage(in)
	}
	p.border = []byte("--" + params["boundary"])
	seen := &tail{in: in}
	reader := multipart.NewReader(seen, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		switch {
		case err == io.EOF:
			return p.after(seen)
		case err != nil && !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return nil
		case err != nil:
			return errors.Join(errMultipart, seen.rest(p.fields))
		}
		if p.count++; p.count > maxParts {
			p.strict = true
			return errors.Join(errMultipart, p.salvage(part), seen.rest(p.fields))
		}
		if err := p.take(part, whole); err != nil {
			return err
		}
	}
}

// take takes one part.
func (p *parts) take(part *multipart.Part, whole bool) error {
	d := readDisposition(part.Header)
	p.strict = p.strict || d.ambiguous
	bytes := 2 * len(d.name)
	for name, values := range part.Header {
		for _, v := range values {
			bytes += len(d.name) + len(name) + len(v)
		}
	}
	for _, name := range d.files {
		bytes += len(d.name) + 2*len(name)
	}
	if bytes > maxPartField {
		p.strict = true
	}
	to := p.room(min(bytes, maxPartField))
	if to == nil {
		return errNoRoom
	}
	for name, values := range part.Header {
		p.strict = p.strict || len(values) > 1
		for _, v := range values {
			if bytes > maxPartField {
				p.fields.Join(name + ": " + v)
				continue
			}
			to.MultipartPartHeaders().Add(Apart(d.name), name+": "+v)
		}
	}
	if bytes > maxPartField {
		d.name, d.files = d.name[:min(len(d.name), maxName)], d.files[:min(len(d.files), 1)]
	}
	to.MultipartName().Add(d.name, d.name)
	for _, name := range d.files {
		name = name[:min(len(name), maxPartField)]
		to.MultipartFilename().Add(Apart(d.name), name)
		if !d.ambiguous && slices.Equal(to.TX().Get("detection_paranoia_level"), []string{"1"}) {
			name = PlainFile(name)
		}
		to.Files().Add("", name)
	}
	var err error
	if len(d.files) > 0 {
		to.FilesNames().Add("", d.name)
	}
	if len(d.files) > 0 && !d.ambiguous {
		err = p.file(part)
	} else {
		err = p.field(d.name, part)
	}
	if err == io.ErrUnexpectedEOF && !whole {
		return nil
	}
	if err != nil {
		return errMultipart
	}
	return nil
}

// PlainFile is the name of a file as rules of the lowest level of paranoia see it. An apostrophe in a word ends no name:
// "d'accueil.png". More paranoid sites doubt even that.
func PlainFile(name string) string { return apostrophe.ReplaceAllString(name, "$1$2") }

// after looks at what follows the last part: some programs read on.
func (p *parts) after(seen *tail) error {
	rest := seen.end()
	if at := bytes.Index(rest, append(p.border, "--"...)); at >= 0 {
		rest = rest[at+len(p.border)+2:]
	}
	buffer := make([]byte, MaxJoined)
	for {
		if len(bytes.TrimSpace(rest)) > 0 {
			p.fields.Join(string(rest))
			return p.salvage(seen.in)
		}
		n, err := seen.in.Read(buffer)
		if rest = buffer[:n]; n == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
}

// file counts the content of a file. Where a border stands in it that only some programs take for one, what follows is
// text.
func (p *parts) file(in io.Reader) error {
	buffer := make([]byte, 0, filePiece)
	for {
		n, err := in.Read(buffer[len(buffer):cap(buffer)])
		p.size += int64(n)
		buffer = buffer[:len(buffer)+n]
		if at := bytes.Index(buffer, p.border); at >= 0 {
			p.fields.Join(string(buffer[at:]))
			return p.salvage(in)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if kept := len(p.border) - 1; len(buffer) > kept {
			buffer = append(buffer[:0], buffer[len(buffer)-kept:]...)
		}
	}
}

// operations is the field in which requests with files have their queries of GraphQL.
const operations = "operations"

// field takes the content of a field.
func (p *parts) field(name string, in io.Reader) error {
	for text := ""; ; {
		content, err := io.ReadAll(io.LimitReader(in, int64(MaxValue-len(text)-len(plainEnd))))
		p.size += int64(len(content))
		text += string(content)
		if err != nil || len(text) < MaxValue-len(plainEnd) {
			if name == operations && IsJSON(text, true) {
				_ = readJSONAs(operations, strings.NewReader(text), true, p.fields)
			} else {
				p.fields.Put(name, text)
			}
			return err
		}
		p.fields.Put(name, text+plainEnd)
		text = plainWord + text[len(text)-ValueOverlap:]
	}
}

// salvage takes what is left as text.
func (p *parts) salvage(in io.Reader) error {
	p.strict = true
	if err := joinAll(in, p.fields); err != nil {
		return err
	}
	return errMultipart
}

// disposition is what a part says of itself.
type disposition struct {
	name string
	// Names of its file, as different programs read them; none for a field.
	files []string
	// Programs may differ in whether it is a file.
	ambiguous bool
}

func readDisposition(header textproto.MIMEHeader) (d disposition) {
	raw := header.Get("Content-Disposition")
	kind, params, err := mime.ParseMediaType(raw)
	if err != nil || kind != "form-data" {
		d.ambiguous = true
	}
	d.name = params["name"]
	if name := params["filename"]; name != "" {
		d.files = append(d.files, name)
	}
	seen := map[string]bool{}
	for field := range strings.SplitSeq(raw, ";") {
		key, value, isParam := strings.Cut(field, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !isParam {
			continue
		}
		if seen[key] {
			d.ambiguous = true
		}
		seen[key] = true
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case key == "name" && d.name == "":
			d.name = value
		case strings.HasPrefix(key, "filename") && value != "":
			if key != "filename" {
				// Of RFC 5987: not every program knows it.
				_, encoded, _ := strings.Cut(value, "'")
				if _, text, found := strings.Cut(encoded, "'"); found {
					value = unescape(strings.ReplaceAll(text, "+", "%2B"))
				}
				d.ambiguous = d.ambiguous || key != "filename*" || !seen["filename"]
			}
			d.addFile(value)
		}
	}
	// A quote may be escaped for some programs and not for others.
	d.ambiguous = d.ambiguous || params["filename"] == "" && len(d.files) > 0
	return d
}

func (d *disposition) addFile(name string) {
	for _, known := range d.files {
		if known == name {
			return
		}
	}
	d.files = append(d.files, name)
}
