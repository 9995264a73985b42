package origin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"edge.svc/caddy/exchange"
)

const (
	maxFields = 1000
	// Informational responses before a final one: some origins send one each second while they work.
	maxInterim = 1000
)

// field is one line of a header.
type field struct{ name, value string }

// response is the header of an answer.
type response struct {
	status int
	// Length of the body; -1 when it ends with the connection. Without meaning when chunked.
	length  int64
	chunked bool
	// What is left of the body, or of its chunk; in a chunk; bytes of framing that no data paid for.
	left    int64
	inChunk bool
	waste   int
	// The connection cannot be used again.
	close bool
	// How long the origin says that it keeps an idle connection; 0 where it does not say.
	keepAlive  time.Duration
	connection []string
	upgrade    []string
	trailer    []string
	fields     []field
}

var responses = sync.Pool{New: func() any { return new(response) }}

func (a *response) release() {
	clear(a.fields)
	*a = response{fields: a.fields[:0], connection: a.connection[:0], upgrade: a.upgrade[:0], trailer: a.trailer[:0]}
	responses.Put(a)
}

// readResponse reads the header of the final response to a request, and passes informational ones on. The parser is as
// strict as net/http, and stricter where two readers could disagree about the end of a message: folded lines,
// transfer codings other than chunked, and differing or listed lengths are refused.
func (c *conn) readResponse(method string, upgrade bool, interim interimTaker) (*response, error) {
	a := responses.Get().(*response)
	budget := maxHeader
	for range maxInterim {
		text, err := c.readHeader(&budget)
		if err == nil {
			err = a.parse(text, method)
		}
		if err != nil {
			a.release()
			return nil, err
		}
		if a.status >= 200 || a.status == http.StatusSwitchingProtocols && upgrade {
			return a, nil
		}
		if a.status == http.StatusSwitchingProtocols {
			break
		}
		if a.status != http.StatusContinue {
			interim.takeInterim(a)
		}
		clear(a.fields)
		*a = response{fields: a.fields[:0], connection: a.connection[:0], upgrade: a.upgrade[:0], trailer: a.trailer[:0]}
	}
	a.release()
	return nil, fmt.Errorf("%w: too many 1xx responses", errMalformed)
}

// interimTaker takes informational responses.
type interimTaker interface{ takeInterim(a *response) }

// takeInterim sends an informational response on to the client, or to who listens in its place. An origin's 100 (Continue) answers the edge, and never comes
// here.
func (t *fetch) takeInterim(a *response) {
	switch {
	case t.x != nil && t.x.TakesInterim():
		t.x.SendInterim(a.status, a.copyHeader)
	case t.interim != nil:
		h := http.Header{}
		a.copyHeader(h)
		delete(h, "Content-Type")
		t.interim(a.status, h)
	}
}

// readHeader reads lines up to an empty one and returns them without it.
func (c *conn) readHeader(budget *int) (string, error) {
	scanned := 0
	for {
		data := c.buf[c.r:c.w]
		for {
			n := bytes.IndexByte(data[scanned:], '\n')
			if n < 0 {
				break
			}
			line := data[scanned : scanned+n]
			if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
				text := string(data[:scanned])
				c.r += scanned + n + 1
				if *budget -= scanned + n + 1; *budget < 0 {
					return "", errTooLarge
				}
				return text, nil
			}
			scanned += n + 1
		}
		if len(data) > *budget {
			return "", errTooLarge
		}
		if len(data) == len(c.buf) && len(data) > 0 {
			next := largeBuffer
			if len(data) >= largeBuffer {
				next = maxHeader + smallBuffer
			}
			c.grow(next)
		}
		if err := c.fill(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
	}
}

func (a *response) parse(text, method string) error {
	line, text := cutLine(text)
	minor, err := a.parseStatusLine(line)
	if err != nil {
		return err
	}
	var lengths, encodings []string
	for text != "" {
		line, text = cutLine(text)
		name, value, err := parseField(line)
		if err != nil {
			return err
		}
		if len(a.fields) == maxFields {
			return errTooLarge
		}
		switch name {
		case "Content-Length":
			lengths = append(lengths, value)
			continue
		case "Transfer-Encoding":
			encodings = append(encodings, value)
			continue
		case "Connection":
			a.connection = append(a.connection, value)
			continue
		case "Upgrade":
			a.upgrade = append(a.upgrade, value)
			continue
		case "Trailer":
			a.trailer = append(a.trailer, value)
			continue
		case "Keep-Alive":
			a.keepAlive = keepAliveOf(value)
			continue
		}
		a.fields = append(a.fields, field{name, value})
	}
	a.close = minor == 0 && !exchange.HasToken(a.connection, "keep-alive") || exchange.HasToken(a.connection, "close")
	return a.frame(minor, method, lengths, encodings)
}

// keepAliveOf reads the timeout in a Keep-Alive field (RFC 2068 §19.7.1.1), 0 where there is none.
//
//	keepAliveOf("timeout=5, max=100") // 5 s
func keepAliveOf(value string) time.Duration {
	for item := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(item, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "timeout") {
			continue
		}
		if seconds, err := strconv.ParseUint(strings.Trim(text, " \t"), 10, 32); err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}

func (a *response) parseStatusLine(line string) (minor int, err error) {
	rest, ok := strings.CutPrefix(line, "HTTP/1.")
	if !ok || len(rest) < 5 || rest[0] != '0' && rest[0] != '1' || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
		return 0, fmt.Errorf("%w: invalid status line %.80q", errMalformed, line)
	}
	for _, digit := range []byte(rest[2:5]) {
		if digit < '0' || digit > '9' {
			return 0, fmt.Errorf("%w: invalid status line %.80q", errMalformed, line)
		}
		a.status = a.status*10 + int(digit-'0')
	}
	if a.status < 100 {
		return 0, fmt.Errorf("%w: invalid status line %.80q", errMalformed, line)
	}
	return int(rest[0] - '0'), nil
}

// frame finds out where the body ends.
func (a *response) frame(minor int, method string, lengths, encodings []string) error {
	length := int64(-1)
	for i, l := range lengths {
		if i > 0 && l != lengths[0] {
			return fmt.Errorf("%w: two Content-Length headers differ", errMalformed)
		}
		n, err := strconv.ParseUint(l, 10, 63)
		if err != nil || l[0] == '+' {
			return fmt.Errorf("%w: invalid Content-Length %.40q", errMalformed, l)
		}
		length = int64(n)
	}
	if len(encodings) > 0 {
		if minor == 0 || len(encodings) > 1 || !strings.EqualFold(encodings[0], "chunked") {
			return fmt.Errorf("%w: invalid transfer coding %.40q", errMalformed, encodings)
		}
		a.chunked = true
		if length >= 0 {
			// The coding wins, but the next answer of such an origin is not to be trusted.
			length, a.close = -1, true
		}
	}
	a.length = length
	switch {
	case a.status < 200 || a.status == http.StatusNoContent:
		if a.chunked || length > 0 {
			a.close = true
		}
		a.length, a.chunked = 0, false
	case method == http.MethodHead || a.status == http.StatusNotModified:
		a.chunked = false
		if length >= 0 {
			a.fields = append(a.fields, field{"Content-Length", lengths[0]})
		}
		a.length = 0
	case a.chunked:
	case length >= 0:
		a.fields = append(a.fields, field{"Content-Length", lengths[0]})
	default:
		a.close = true
	}
	return nil
}

// cutLine splits off the first line. Lines end with LF, or CR LF.
func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

func parseField(line string) (name, value string, err error) {
	colon := strings.IndexByte(line, ':')
	if colon <= 0 {
		return "", "", fmt.Errorf("%w: invalid header %.80q", errMalformed, line)
	}
	// RFC 9112 §5.1: a proxy removes blanks before the colon of a response. A line that begins with one stays refused: it
	// continues the line before.
	name = strings.TrimRight(line[:colon], " \t")
	if name == "" {
		return "", "", fmt.Errorf("%w: invalid header %.80q", errMalformed, line)
	}
	for i := range len(name) {
		if !tokenByte[name[i]] {
			return "", "", fmt.Errorf("%w: invalid header %.80q", errMalformed, line)
		}
	}
	value = strings.Trim(line[colon+1:], " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", "", fmt.Errorf("%w: invalid header %.80q", errMalformed, line)
		}
	}
	return canonicalName(name), value, nil
}

// canonicalName spares an allocation for the names that most answers have.
func canonicalName(name string) string {
	if known, ok := knownNames[name]; ok {
		return known
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

var (
	tokenByte  [256]bool
	knownNames = map[string]string{}
)

func init() {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		tokenByte[c] = true
	}
	for _, name := range []string{
		"Accept-Ranges", "Age", "Allow", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
		"Content-Language", "Content-Length", "Content-Range", "Content-Security-Policy", "Content-Type", "Date", "Etag",
		"Expires", "Keep-Alive", "Last-Modified", "Link", "Location", "Pragma", "Referrer-Policy", "Retry-After", "Server",
		"Set-Cookie", "Strict-Transport-Security", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "Via",
		"Www-Authenticate", "X-Cache", "X-Content-Type-Options", "X-Frame-Options", "X-Powered-By", "X-Request-Id",
		"X-Xss-Protection", "Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods",
	} {
		knownNames[name] = name
		knownNames[strings.ToLower(name)] = name
	}
	knownNames["ETag"] = "Etag"
}
