package freshness

import "strings"

// ParseTargeted reads the lines of CDN-Cache-Control, a dictionary of structured fields (RFC 9213 section 2.1, RFC 9651
// section 3.2). ok is false where the field is not valid or empty: then it counts as missing. Parameters are ignored. A time
// that is no integer is 0; a directive without a value that is `?0` is missing. Of a directive that comes twice, the last
// counts.
func ParseTargeted(lines []string) (c Control, ok bool) {
	p := structured{rest: strings.Trim(strings.Join(lines, ","), " ")}
	values := map[string]item{}
	for p.rest != "" {
		name, value, valid := p.entry()
		if !valid {
			return noControl(), false
		}
		values[name] = value
		p.skip(" \t")
		if p.rest == "" {
			break
		}
		if !p.take(',') {
			return noControl(), false
		}
		if p.skip(" \t"); p.rest == "" {
			return noControl(), false
		}
	}
	c = noControl()
	for name, value := range values {
		if value.kind == isFalse {
			continue
		}
		c.takeTargeted(name, value)
	}
	c.Present = len(values) > 0
	return c, c.Present
}

func (c *Control) takeTargeted(name string, v item) {
	switch name {
	case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
		text := ""
		if v.kind == isInteger {
			text = v.text
		}
		c.take(name, text, true)
	case "no-cache", "private":
		c.take(name, v.text, v.kind == isString)
	default:
		c.take(name, "", false)
	}
}

type itemKind uint8

const (
	isTrue itemKind = iota
	isFalse
	isInteger
	isString
	isOther
)

type item struct {
	kind itemKind
	text string
}

// structured reads a structured field from its beginning.
type structured struct{ rest string }

func (p *structured) skip(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *structured) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// while takes the bytes that fit.
func (p *structured) while(fits func(c byte) bool) string {
	n := 0
	for n < len(p.rest) && fits(p.rest[n]) {
		n++
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func keyByte(c byte) bool {
	return lower(c) || digit(c) || c == '_' || c == '-' || c == '.' || c == '*'
}

func (p *structured) key() (string, bool) {
	if p.rest == "" || !lower(p.rest[0]) && p.rest[0] != '*' {
		return "", false
	}
	return p.while(keyByte), true
}

func (p *structured) entry() (name string, v item, ok bool) {
	if name, ok = p.key(); !ok {
		return "", item{}, false
	}
	if p.take('=') {
		if v, ok = p.value(); !ok {
			return "", item{}, false
		}
	}
	return name, v, p.parameters()
}

func (p *structured) parameters() bool {
	for p.take(';') {
		p.skip(" ")
		if _, ok := p.key(); !ok {
			return false
		}
		if p.take('=') {
			if _, ok := p.bare(); !ok {
				return false
			}
		}
	}
	return true
}

// value is an item or an inner list.
func (p *structured) value() (item, bool) {
	if !p.take('(') {
		return p.bare()
	}
	for {
		p.skip(" ")
		if p.take(')') {
			return item{kind: isOther}, true
		}
		if _, ok := p.bare(); !ok || !p.parameters() {
			return item{}, false
		}
		if p.rest == "" || p.rest[0] != ' ' && p.rest[0] != ')' {
			return item{}, false
		}
	}
}

func (p *structured) bare() (item, bool) {
	if p.rest == "" {
		return item{}, false
	}
	switch c := p.rest[0]; {
	case c == '-' || digit(c):
		return p.number()
	case c == '"':
		return p.quoted()
	case c == '?':
		switch {
		case strings.HasPrefix(p.rest, "?1"):
			p.rest = p.rest[2:]
			return item{kind: isTrue}, true
		case strings.HasPrefix(p.rest, "?0"):
			p.rest = p.rest[2:]
			return item{kind: isFalse}, true
		}
	case c == ':':
		p.take(':')
		p.while(func(c byte) bool { return lower(c|0x20) || digit(c) || c == '+' || c == '/' || c == '=' })
		return item{kind: isOther}, p.take(':')
	case c == '@':
		p.take('@')
		v, ok := p.number()
		return item{kind: isOther}, ok && v.kind == isInteger
	case lower(c|0x20) || c == '*':
		p.while(func(c byte) bool { return c == ':' || c == '/' || isToken(string(rune(c))) && c < 0x80 })
		return item{kind: isOther}, true
	}
	return item{}, false
}

// number reads an integer of at most 15 digits, or a decimal of at most 12 and 3. One below 0 is no time.
func (p *structured) number() (item, bool) {
	negative := p.take('-')
	digits := p.while(digit)
	if digits == "" || len(digits) > 15 {
		return item{}, false
	}
	if p.take('.') {
		part := p.while(digit)
		return item{kind: isOther}, len(digits) <= 12 && part != "" && len(part) <= 3
	}
	if negative {
		return item{kind: isOther}, true
	}
	return item{isInteger, digits}, true
}

func (p *structured) quoted() (item, bool) {
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c < 0x20 || c >= 0x7f:
			return item{}, false
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return item{}, false
			}
		case c == '"':
			text, ok := unquote(p.rest[:i+1])
			p.rest = p.rest[i+1:]
			return item{isString, text}, ok
		}
	}
	return item{}, false
}
