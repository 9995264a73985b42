package bodies

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"regexp"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// The longest windows of zstd (RFC 9659, section 3) and of brotli at its usual setting: what a decoder takes in memory.
	maxZstdWindow   = 8 << 20
	maxBrotliWindow = 22
)

var errCoding = errors.New("the body does not have the content coding that it claims")

// Decoders unpack the content codings that have one, by their names in Content-Encoding. What they read has no bytes after
// the end, and nothing that needs more memory than a window.
var Decoders = map[string]func(in *bufio.Reader) (io.Reader, error){
	"gzip":    gzipDecoder,
	"x-gzip":  gzipDecoder,
	"deflate": deflateDecoder,
	"br":      brotliDecoder,
	"zstd":    zstdDecoder,
}

func gzipDecoder(in *bufio.Reader) (io.Reader, error) { return gzip.NewReader(in) }

// deflateDecoder reads what "deflate" means: the format of zlib. Some programs try that without its head first.
func deflateDecoder(in *bufio.Reader) (io.Reader, error) {
	if head, _ := in.Peek(5); len(head) == 5 && head[0]&6 == 0 && head[1]^head[3] == 0xff && head[2]^head[4] == 0xff {
		return nil, errCoding
	}
	out, err := zlib.NewReader(in)
	return &untilEnd{out, in}, err
}

func brotliDecoder(in *bufio.Reader) (io.Reader, error) {
	if head, err := in.Peek(1); err != nil || head[0]&1 == 1 && 17+int(head[0]>>1&7) > maxBrotliWindow {
		return nil, errCoding
	}
	return brotli.NewReader(in), nil
}

func zstdDecoder(in *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
}

// untilEnd fails where something follows the end.
type untilEnd struct {
	io.Reader
	rest *bufio.Reader
}

func (u *untilEnd) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err == io.EOF {
		if _, after := u.rest.ReadByte(); after == nil {
			err = errCoding
		}
	}
	return n, err
}

// CloseDecoder ends one that holds something.
func CloseDecoder(d io.Reader) {
	if z, ok := d.(*zstd.Decoder); ok {
		z.Close()
	}
}

// HasBorder reports whether a body has a border between parts as it is, or could have: nothing is known of its boundary.
func HasBorder(in io.Reader, contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || boundary == "" || len(boundary) > maxBoundary {
		return true
	}
	border, piece, kept := []byte("--"+boundary), make([]byte, filePiece), 0
	for {
		n, err := in.Read(piece[kept:])
		if bytes.Contains(piece[:kept+n], border) {
			return true
		}
		if err != nil {
			return err != io.EOF
		}
		kept = copy(piece, piece[max(0, kept+n-len(border)):kept+n])
	}
}

// leastText is how many bytes in a row make a text that a rule for raw bodies finds anything in.
const leastText = 10

// Texts finds what could be text in a packed body, in pieces of a bounded length.
func Texts(in io.Reader, take func(text string)) error {
	text := make([]byte, 0, MaxValue)
	row := 0
	err := eachByte(in, func(c byte) {
		switch {
		case c >= ' ' && c < 0x7f || c >= '\t' && c <= '\r':
			text = append(text, c)
			row++
		case row >= leastText:
			text, row = append(text, '\n'), 0
		default:
			text, row = text[:len(text)-row], 0
		}
		if len(text) >= MaxValue-1 {
			take(string(text))
			text, row = text[:0], 0
		}
	})
	if row < leastText {
		text = text[:len(text)-row]
	}
	if err == nil && len(text) > 0 {
		take(string(text))
	}
	return err
}

// fieldName is what a program knows a field of a form by.
var fieldName = regexp.MustCompile(`^[\w.\[\]%+ -]+$`)

// Fields finds what somebody reads as fields of a form in a packed body who knows of no codings. Bytes that no text has are
// left out of values.
func Fields(in io.Reader, take func(name, value string)) error {
	field := make([]byte, 0, 4<<10)
	end := func() {
		name, value, found := bytes.Cut(field, []byte("="))
		if found && fieldName.Match(name) {
			take(unescape(string(name)), unescape(string(bytes.Map(func(r rune) rune {
				if r < ' ' && (r < '\t' || r > '\r') {
					return -1
				}
				return r
			}, value))))
		}
		field = field[:0]
	}
	err := eachByte(in, func(c byte) {
		if c == '&' || len(field) == MaxValue {
			end()
		}
		if c != '&' {
			field = append(field, c)
		}
	})
	if err == nil {
		end()
	}
	return err
}

func eachByte(in io.Reader, take func(c byte)) error {
	piece := make([]byte, filePiece)
	for {
		n, err := in.Read(piece)
		for _, c := range piece[:n] {
			take(c)
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

// BeginsLike reports whether a packed body begins as one of a kind does that is not packed. Neither JSON nor XML has
// control characters.
func BeginsLike(head []byte, kind string) bool {
	if bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }) {
		return false
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if len(head) == 0 {
		return false
	}
	switch kind {
	case JSON:
		return strings.IndexByte("{[\"", head[0]) >= 0
	case XML:
		return head[0] == '<'
	}
	return false
}
