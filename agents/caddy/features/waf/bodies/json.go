package bodies

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// Arrays and objects in one another beyond which names are not built any more.
	maxDepth = 64
	// Bytes of a name; longer ones are joined text, else names of names would be many times the body.
	maxName = 1 << 10
	// A string is in memory up to this. A longer one is several.
	maxString = MaxValue
)

var errJSON = errors.New("the body is not valid JSON")

// jsonReader reads JSON as it comes, whatever is wrong with it: strings up to the limits on arguments and depth become
// arguments by the names of where they stand, all other strings, names among them, and what follows a mistake, become
// joined text. Beyond the limits only numbers, true, false and null are dropped.
type jsonReader struct {
	in  *bufio.Reader
	out *Arguments
	// Whole says that the body has no more: it ends in the middle, then, because it is wrong, and not for a limit.
	whole bool
	// Several documents may follow one another.
	several bool

	path   []byte
	levels []jsonLevel
	// Of how many levels the present name is in an argument, or in joined text.
	told int
	// How many levels are open beyond the deepest with a name; bits of what they are.
	deep  int
	kinds []byte
	text  []byte
	wrong bool
}

// jsonLevel is an object or an array that is open.
type jsonLevel struct {
	object bool
	// Length of the path that names it.
	path  int
	index int
	// The path is too long to go on.
	unnamed bool
}

// ReadJSON takes the strings of a body as arguments named "json" and the way to them. It fails where the body is not one
// valid document, after it took everything.
func ReadJSON(in io.Reader, whole bool, out *Arguments) error {
	return readJSONAs("json", in, whole, out)
}

// readJSONAs takes the strings of a document as arguments named like it.
func readJSONAs(name string, in io.Reader, whole bool, out *Arguments) error {
	r := &jsonReader{in: bufio.NewReader(in), out: out, whole: whole, path: []byte(name)}
	err := r.read()
	r.tell()
	out.End()
	return err
}

// ReadDocuments reports whether a whole body is JSON, of one document or several.
func ReadDocuments(in io.Reader) bool {
	r := &jsonReader{in: bufio.NewReader(in), out: &Arguments{Add: func(string, string) {}}, whole: true, several: true}
	return r.read() == nil
}

// read goes from value to value without recursion. state says what may come next.
func (r *jsonReader) read() error {
	const value, next, key, colon = 0, 1, 2, 3
	state, documents := value, 0
	if mark, _ := r.in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.in.Discard(len(mark))
	}
	// A closing bracket may come at once, but not after a comma.
	fresh := false
	for {
		c, err := r.in.ReadByte()
		if err == io.EOF {
			if r.whole && (r.depth() > 0 || documents != 1 && !r.several || state == value) {
				r.wrong = true
			}
			break
		}
		if err != nil {
			return err
		}
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		switch {
		case state == next && r.depth() == 0:
			// One document is over: what follows it is read all the same.
			r.wrong = r.wrong || !r.several
			state = value
			_ = r.in.UnreadByte()
		case state == value && (c == '{' || c == '['):
			r.open(c == '{')
			state, fresh = value, true
			if c == '{' {
				state = key
			}
		case c == '}' || c == ']':
			if !r.close(c == '}') || state != next && !fresh {
				return r.salvage(c)
			}
			state, fresh = r.after(&documents), false
		case state == key && c == '"':
			fresh = false
			done, err := r.readString(func(text string) {
				r.out.Join(text)
				r.text = r.text[:0]
			})
			if err != nil {
				return err
			}
			r.name()
			if state = colon; !done {
				return r.cut()
			}
		case state == colon && c == ':':
			state = value
		case state == next && c == ',':
			state = value
			if r.inObject() {
				state = key
			}
			r.advance()
		case state == value && c == '"':
			fresh = false
			done, err := r.readString(func(text string) {
				r.leaf(text+plainEnd, true)
				r.text = append(append(r.text[:0], plainWord...), text[len(text)-ValueOverlap:]...)
			})
			if err != nil {
				return err
			}
			r.leaf(string(r.text), true)
			if !done {
				return r.cut()
			}
			state = r.after(&documents)
		case state == value && (c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n'):
			fresh = false
			if !r.literal(c) {
				return r.salvage(0)
			}
			state = r.after(&documents)
		default:
			return r.salvage(c)
		}
	}
	return r.result()
}

func (r *jsonReader) result() error {
	if r.wrong {
		return errJSON
	}
	return nil
}

// cut ends where the body ends within a string.
func (r *jsonReader) cut() error {
	r.wrong = r.wrong || r.whole
	return r.result()
}

// after says what comes after a value.
func (r *jsonReader) after(documents *int) int {
	const next = 1
	if r.depth() == 0 {
		*documents++
	}
	return next
}

func (r *jsonReader) depth() int { return len(r.levels) + r.deep }

func (r *jsonReader) inObject() bool {
	if r.deep > 0 {
		return r.kinds[len(r.kinds)-1] == '{'
	}
	return len(r.levels) > 0 && r.levels[len(r.levels)-1].object
}

func (r *jsonReader) open(object bool) {
	if len(r.levels) == maxDepth {
		r.deep++
		kind := byte('[')
		if object {
			kind = '{'
		}
		r.kinds = append(r.kinds, kind)
		return
	}
	level := jsonLevel{object: object, path: len(r.path)}
	if n := len(r.levels); n > 0 {
		level.unnamed = r.levels[n-1].unnamed
	}
	r.levels = append(r.levels, level)
	if !object {
		r.number(0)
	}
}

// close reports whether what ends is what was open.
func (r *jsonReader) close(object bool) bool {
	if r.depth() == 0 || r.inObject() != object {
		return false
	}
	if r.deep > 0 {
		r.deep--
		r.kinds = r.kinds[:len(r.kinds)-1]
		return true
	}
	r.tell()
	last := r.levels[len(r.levels)-1]
	r.levels, r.path = r.levels[:len(r.levels)-1], r.path[:last.path]
	r.told = min(r.told, len(r.levels))
	return true
}

// tell joins the names on the way to here that are nowhere yet, because what they name has no text.
func (r *jsonReader) tell() {
	for i := r.told; i < len(r.levels); i++ {
		end := len(r.path)
		if i+1 < len(r.levels) {
			end = r.levels[i+1].path
		}
		if name := r.path[r.levels[i].path:end]; r.levels[i].object && len(name) > 0 {
			r.out.Join(string(name[1:]))
		}
	}
	r.told = len(r.levels)
}

// advance goes to the next element of an array.
func (r *jsonReader) advance() {
	if r.deep > 0 || r.inObject() || len(r.levels) == 0 {
		return
	}
	level := &r.levels[len(r.levels)-1]
	level.index++
	r.number(level.index)
}

func (r *jsonReader) number(index int) {
	level := &r.levels[len(r.levels)-1]
	r.path = append(r.path[:level.path], '.')
	r.path = strconv.AppendInt(r.path, int64(index), 10)
}

// name takes the string that was read as the name of what follows.
func (r *jsonReader) name() {
	if r.deep > 0 {
		r.out.Join(string(r.text))
		return
	}
	level := &r.levels[len(r.levels)-1]
	if len(r.path) > level.path {
		r.tell()
	}
	outer := len(r.levels) - 1
	r.told = min(r.told, outer)
	inside := outer > 0 && r.levels[outer-1].unnamed
	level.unnamed = inside || level.path+len(r.text)+1 > maxName
	r.path = r.path[:level.path]
	if level.unnamed || r.out.full() {
		r.out.Join(string(r.text))
		if r.told == outer {
			r.told++
		}
	}
	if !level.unnamed {
		r.path = append(append(r.path, '.'), r.text...)
	}
}

// leaf takes a value that holds no others.
func (r *jsonReader) leaf(value string, text bool) {
	unnamed := r.deep > 0 || len(r.levels) > 0 && r.levels[len(r.levels)-1].unnamed
	switch {
	case !unnamed && !r.out.full():
		r.out.Put(string(r.path), value)
		r.told = len(r.levels)
	case text && unnamed:
		r.out.Join(r.out.readable("", value))
	case text:
		r.out.Join(r.out.readable(string(r.path), value))
	}
}

// literal reads a number, true, false or null; false where it is none of them.
func (r *jsonReader) literal(first byte) bool {
	word := append(r.text[:0], first)
	for len(word) < maxName {
		c, err := r.in.ReadByte()
		if err != nil {
			break
		}
		if !(c == '+' || c == '-' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			_ = r.in.UnreadByte()
			break
		}
		word = append(word, c)
	}
	r.text = word
	text := string(word)
	switch {
	case text == "null":
		r.leaf("", false)
	case text == "true", text == "false", isNumber(text):
		r.leaf(text, false)
	default:
		// It may be cut, or text that somebody reads as a string.
		if _, err := r.in.Peek(1); err == nil || r.whole {
			r.wrong = true
		}
		r.leaf(text, true)
	}
	return len(word) < maxName
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c|0x20 != 'e' {
			return false
		}
	}
	return true
}

// readString reads a string after its quote into text; done says that its end was read. Of what is longer than maxString the
// beginning is given to long, which leaves in text what the rest goes on with.
func (r *jsonReader) readString(long func(text string)) (done bool, err error) {
	r.text = r.text[:0]
	for {
		c, err := r.in.ReadByte()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		switch {
		case c == '"':
			return true, nil
		case c == '\\':
			r.escape()
		case c < ' ':
			r.wrong = true
			r.text = append(r.text, c)
		default:
			r.text = append(r.text, c)
		}
		if len(r.text) >= maxString-len(plainEnd) {
			long(string(r.text))
		}
	}
}

// escape reads what follows a backslash.
func (r *jsonReader) escape() {
	c, err := r.in.ReadByte()
	if err != nil {
		r.text = append(r.text, '\\')
		return
	}
	switch c {
	case '"', '\\', '/':
		r.text = append(r.text, c)
	case 'b':
		r.text = append(r.text, '\b')
	case 'f':
		r.text = append(r.text, '\f')
	case 'n':
		r.text = append(r.text, '\n')
	case 'r':
		r.text = append(r.text, '\r')
	case 't':
		r.text = append(r.text, '\t')
	case 'u':
		r.unicode()
	default:
		r.wrong = true
		r.text = append(r.text, '\\', c)
	}
}

func (r *jsonReader) unicode() {
	first, ok := r.fourDigits()
	if !ok {
		_, err := r.in.Peek(4)
		r.wrong = r.wrong || r.whole || err == nil
		r.text = append(r.text, '\\', 'u')
		return
	}
	if utf16.IsSurrogate(first) {
		if next, _ := r.in.Peek(6); len(next) == 6 && next[0] == '\\' && next[1] == 'u' {
			if n, ok := hexNumber(string(next[2:])); ok {
				if joined := utf16.DecodeRune(first, rune(n)); joined != utf8.RuneError {
					_, _ = r.in.Discard(len(next))
					first = joined
				}
			}
		}
	}
	r.text = utf8.AppendRune(r.text, first)
}

func (r *jsonReader) fourDigits() (rune, bool) {
	digits, _ := r.in.Peek(4)
	n, ok := hexNumber(string(digits))
	if len(digits) < 4 || !ok {
		return 0, false
	}
	_, _ = r.in.Discard(len(digits))
	return rune(n), true
}

// salvage takes everything from a mistake on as text, as it is and with its escapes undone.
func (r *jsonReader) salvage(first byte) error {
	r.wrong = true
	r.text = r.text[:0]
	if first != 0 {
		r.text = append(r.text, first)
	}
	r.out.Join("\n")
	for {
		c, err := r.in.ReadByte()
		if err == io.EOF {
			r.out.more(string(r.text))
			return errJSON
		}
		if err != nil {
			return err
		}
		if c == '\\' {
			r.escape()
		} else {
			r.text = append(r.text, c)
		}
		if len(r.text) >= MaxJoined {
			r.out.more(string(r.text))
			r.text = r.text[:0]
		}
	}
}
