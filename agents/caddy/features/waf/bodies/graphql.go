package bodies

import "strings"

// isQueryName reports whether an argument is where programs send a document of GraphQL.
func isQueryName(name string) bool {
	document, inside := strings.CutSuffix(name, ".query")
	return name == "query" || inside && (strings.HasPrefix(document, "json") || strings.HasPrefix(document, operations))
}

// graphQLTexts returns what a document of GraphQL says: its strings and comments, as lines. What else there is in one are
// names, numbers and brackets, which mean nothing to any other program, and to rules look like calls in SQL and groups of
// commands: "user(id: 1)", "{ node { id } }". Not ok is whatever is not a document from its first byte to the last.
func graphQLTexts(document string) (texts string, ok bool) {
	r := &graphQLReader{rest: document}
	for r.next(); !r.wrong && r.token != ""; {
		r.definition()
	}
	return strings.Join(r.texts, "\n"), !r.wrong && r.definitions > 0
}

// maxSelections is how deep selections and values are in one another.
const maxSelections = 64

// graphQLReader reads a document token by token; "" is its end.
type graphQLReader struct {
	rest        string
	token       string
	texts       []string
	definitions int
	depth       int
	wrong       bool
}

// next reads a token. Of a string the token is a quote, of a number a zero.
func (r *graphQLReader) next() {
	for r.rest != "" {
		c := r.rest[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',':
			r.rest = r.rest[1:]
		case c == '#':
			end := strings.IndexAny(r.rest, "\r\n")
			if end < 0 {
				end = len(r.rest)
			}
			r.texts, r.rest = append(r.texts, r.rest[1:end]), r.rest[end:]
		case strings.IndexByte("{}()[]:=!|@$&", c) >= 0:
			r.token, r.rest = r.rest[:1], r.rest[1:]
			return
		case strings.HasPrefix(r.rest, "..."):
			r.token, r.rest = r.rest[:3], r.rest[3:]
			return
		case c == '"':
			r.text()
			return
		case c == '-' || c >= '0' && c <= '9':
			r.take(func(c byte) bool { return isNameByte(c) && c != '_' || c == '.' || c == '+' || c == '-' })
			r.wrong = r.wrong || !isNumber(r.token)
			r.token = "0"
			return
		case isNameByte(c):
			r.take(isNameByte)
			return
		default:
			r.wrong, r.token = true, ""
			return
		}
	}
	r.token = ""
}

func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func (r *graphQLReader) take(of func(byte) bool) {
	n := 1
	for n < len(r.rest) && of(r.rest[n]) {
		n++
	}
	r.token, r.rest = r.rest[:n], r.rest[n:]
}

// text reads a string, with its escapes undone, or a block.
func (r *graphQLReader) text() {
	r.token = `"`
	if block, found := strings.CutPrefix(r.rest, `"""`); found {
		text, rest, ended := strings.Cut(block, `"""`)
		r.texts, r.rest, r.wrong = append(r.texts, text), rest, r.wrong || !ended
		return
	}
	for i := 1; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '\n', '\r':
			r.wrong = true
			return
		case '"':
			text, _, _ := JSDecode(r.rest[1:i])
			r.texts, r.rest = append(r.texts, text), r.rest[i+1:]
			return
		}
	}
	r.wrong = true
}

func (r *graphQLReader) accept(token string) bool {
	if r.wrong || r.token != token {
		return false
	}
	r.next()
	return true
}

func (r *graphQLReader) expect(token string) {
	if !r.accept(token) {
		r.wrong = true
	}
}

func (r *graphQLReader) isName() bool {
	return r.token != "" && isNameByte(r.token[0]) && r.token != "0"
}

func (r *graphQLReader) name() {
	if r.wrong = r.wrong || !r.isName(); !r.wrong {
		r.next()
	}
}

// list reads what stands between two tokens, one at least.
func (r *graphQLReader) list(end string, one func()) {
	if r.depth++; r.depth > maxSelections {
		r.wrong = true
	}
	for one(); !r.wrong && !r.accept(end); {
		one()
	}
	r.depth--
}

func (r *graphQLReader) definition() {
	r.definitions++
	switch r.token {
	case "{":
	case "fragment":
		r.next()
		r.name()
		r.expect("on")
		r.name()
	case "query", "mutation", "subscription":
		if r.next(); r.isName() {
			r.name()
		}
		if r.accept("(") {
			r.list(")", r.variable)
		}
	default:
		r.wrong = true
	}
	r.directives()
	r.expect("{")
	r.list("}", r.selection)
}

func (r *graphQLReader) variable() {
	r.expect("$")
	r.name()
	r.expect(":")
	r.kind()
	if r.accept("=") {
		r.value()
	}
	r.directives()
}

func (r *graphQLReader) kind() {
	if r.accept("[") {
		r.list("]", r.kind)
	} else {
		r.name()
	}
	r.accept("!")
}

func (r *graphQLReader) directives() {
	for r.accept("@") {
		r.name()
		r.arguments()
	}
}

func (r *graphQLReader) arguments() {
	if r.accept("(") {
		r.list(")", r.pair)
	}
}

func (r *graphQLReader) pair() {
	r.name()
	r.expect(":")
	r.value()
}

func (r *graphQLReader) value() {
	switch {
	case r.accept("$"):
		r.name()
	case r.accept("["):
		if !r.accept("]") {
			r.list("]", r.value)
		}
	case r.accept("{"):
		if !r.accept("}") {
			r.list("}", r.pair)
		}
	case r.accept(`"`), r.accept("0"):
	default:
		r.name()
	}
}

func (r *graphQLReader) selection() {
	if r.accept("...") {
		if r.accept("on") || r.isName() {
			r.name()
		}
	} else {
		if r.name(); r.accept(":") {
			r.name()
		}
		r.arguments()
	}
	r.directives()
	if r.accept("{") {
		r.list("}", r.selection)
	}
}
