package svcwaf

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
)

var errMultipart = errors.New("not a valid multipart body")

const (
	// Parts of a body of which names and headers are looked at.
	maxParts = 1024
	// Of the content of a field one argument is made up to this; what follows is joined text.
	maxField = 1 << 20
)

// parts fills what rules read of a multipart body. Nothing is written to disk: the contents of files are counted and
// forgotten.
type parts struct {
	to     plugintypes.TransactionVariables
	fields *arguments
	size   int64
	count  int
	strict bool
}

// readMultipart takes the parts of a body. Whole says that the body has no more, so that an end in its middle is a
// mistake and not for a limit.
func readMultipart(in io.Reader, contentType string, whole bool, to plugintypes.TransactionVariables, fields *arguments) error {
	p := &parts{to: to, fields: fields}
	fields.name = "multipart"
	err := p.read(in, contentType, whole)
	fields.end()
	if p.strict || err != nil {
		set(to.MultipartStrictError(), "1")
	}
	set(to.FilesCombinedSize(), strconv.FormatInt(p.size, 10))
	return err
}

func (p *parts) read(in io.Reader, contentType string, whole bool) error {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return p.salvage(in)
	}
	reader := multipart.NewReader(in, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		switch {
		case err == io.EOF:
			if p.count == 0 && whole {
				return errMultipart
			}
			return nil
		case err != nil && !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return nil
		case err != nil:
			return errors.Join(errMultipart, p.salvage(in))
		}
		if p.count++; p.count > maxParts {
			p.strict = true
			return errors.Join(errMultipart, p.salvage(part), p.salvage(in))
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
	for name, values := range part.Header {
		p.strict = p.strict || len(values) > 1
		for _, v := range values {
			p.to.MultipartPartHeaders().Add(d.name, name+": "+v)
		}
	}
	p.to.MultipartName().Add(d.name, d.name)
	for _, name := range d.files {
		p.to.MultipartFilename().Add(d.name, name)
		p.to.Files().Add("", name)
	}
	var err error
	if len(d.files) > 0 {
		p.to.FilesNames().Add("", d.name)
	}
	if len(d.files) > 0 && !d.ambiguous {
		var n int64
		n, err = io.Copy(io.Discard, part)
		p.size += n
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

// field takes the content of a field.
func (p *parts) field(name string, in io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(in, maxField))
	p.size += int64(len(content))
	p.fields.put(name, string(content))
	if err != nil || len(content) < maxField {
		return err
	}
	return p.salvage(in)
}

// salvage takes what is left as text.
func (p *parts) salvage(in io.Reader) error {
	p.strict = true
	buffer := make([]byte, maxJoined)
	for {
		n, err := in.Read(buffer)
		p.fields.more(string(buffer[:n]))
		if err == io.EOF {
			return errMultipart
		}
		if err != nil {
			return err
		}
	}
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
