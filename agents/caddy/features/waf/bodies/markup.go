package bodies

import (
	"slices"
	"strings"
)

// To rules every attribute style or src is an attack, and so is every comment: articles from any editor of texts have them.
// They see what is surely harmless of it as text beside its element: nothing is hidden from them but that it was markup.
var (
	plainElements = []string{
		"a", "audio", "blockquote", "br", "caption", "center", "code", "col", "colgroup", "div", "em", "figcaption", "figure", "font", "h1", "h2", "h3",
		"h4", "h5", "h6", "hr", "i", "b", "img", "li", "mark", "ol", "p", "pre", "s", "section", "small", "source", "span", "strong", "sub", "sup", "table",
		"tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "video",
	}
	// There are rules for them alone.
	mediaElements = []string{"audio", "img", "source", "video"}
	// Attributes without a value.
	plainSwitches   = []string{"controls", "loop", "muted", "playsinline"}
	plainAttributes = []string{
		"align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "class", "color", "colspan", "dir", "face", "height", "href", "id",
		"lang", "rel", "rowspan", "size", "src", "style", "target", "title", "type", "valign", "width",
	}
	// Functions that a style may have.
	plainFunctions = []string{"rgb", "rgba", "hsl", "hsla", "calc", "min", "max"}
	// What no style that is only looks has.
	styleCode = []string{"expression", "behavior", "behaviour", "binding", "javascript", "import", "/*", "url"}
)

// readMarkup returns a text as rules see it.
func readMarkup(text string) string {
	at := strings.IndexByte(text, '<')
	if at < 0 {
		return text
	}
	var out []byte
	seen := 0
	for more := true; more; {
		// Neither has another "<" in it: nothing is read twice.
		end := strings.IndexByte(text[at+1:], '<') + at + 1
		if more = end > at; !more {
			end = len(text)
		}
		plain, length := readComment(text[at:end])
		if length == 0 {
			plain, length = readElement(text[at:end])
		}
		if length > 0 {
			out = append(append(out, text[seen:at]...), plain...)
			seen = at + length
		}
		at = end
	}
	if out == nil {
		return text
	}
	return string(append(out, text[seen:]...))
}

// readComment reads a comment by which an editor marks a block of an article; length is 0 where there is none.
func readComment(text string) (plain string, length int) {
	const first, last = "<!-- ", " -->"
	inside, found := strings.CutPrefix(text, first)
	if !found || !strings.HasPrefix(inside, "wp:") && !strings.HasPrefix(inside, "/wp:") {
		return "", 0
	}
	end := strings.Index(inside, last)
	if end < 0 || strings.ContainsAny(inside[:end], "<>") || strings.Contains(inside[:end], "--") {
		return "", 0
	}
	return " " + inside[:end] + " ", len(first) + end + len(last)
}

// readElement reads the beginning of an element that has a style or an address; length is 0 where it is anything else, or
// has anything that may be more than looks.
func readElement(text string) (plain string, length int) {
	at := 1
	for at < len(text) && isNameByte(text[at]) {
		at++
	}
	name := strings.ToLower(text[1:at])
	if !slices.Contains(plainElements, name) {
		return "", 0
	}
	tag, last, beside := []byte(text[:at]), byte('>'), []byte(nil)
	media := slices.Contains(mediaElements, name)
	if media {
		tag[0], last = '[', ']'
	}
	for {
		spaces := at
		for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
		}
		rest := text[at:]
		if end, found := strings.CutPrefix(rest, "/"); found && strings.HasPrefix(end, ">") || strings.HasPrefix(rest, ">") {
			if beside == nil {
				return "", 0
			}
			return string(append(append(tag, last), beside...)), len(text) - len(strings.TrimPrefix(rest, "/")) + 1
		}
		attribute, value, size := readAttribute(rest)
		if size == 0 || at == spaces {
			return "", 0
		}
		at += size
		switch attribute {
		case "style":
			if !isPlainStyle(value) {
				return "", 0
			}
			beside = append(append(append(beside, ' '), strings.ReplaceAll(value, "&quot;", "")...), ' ')
		case "src":
			if !media {
				return "", 0
			}
			if beside = append(beside, ' '); !isInlineImage(value) {
				if !isPlainAddress(value) {
					return "", 0
				}
				beside = append(append(beside, value...), ' ')
			}
		default:
			if attribute == "href" && !isPlainAddress(value) {
				return "", 0
			}
			tag = append(tag, text[spaces:at]...)
		}
	}
}

// readAttribute reads an attribute with a value in quotes, or one that needs none; size is 0 where it is another one.
func readAttribute(text string) (name, value string, size int) {
	for _, name := range plainSwitches {
		if after, found := strings.CutPrefix(text, name); found && after != "" && strings.IndexByte(" >/", after[0]) >= 0 {
			return name, "", len(name)
		}
	}
	equals := strings.IndexByte(text, '=')
	if equals < 1 || equals+1 >= len(text) {
		return "", "", 0
	}
	name = strings.ToLower(text[:equals])
	data, isData := strings.CutPrefix(name, "data-")
	if !slices.Contains(plainAttributes, name) && !(isData && IsToken(data)) {
		return "", "", 0
	}
	quote := text[equals+1]
	if quote != '"' && quote != '\'' {
		return "", "", 0
	}
	value, _, ended := strings.Cut(text[equals+2:], string(quote))
	if !ended || strings.ContainsAny(value, "<>`") {
		return "", "", 0
	}
	return name, value, equals + 2 + len(value) + 1
}

// isPlainStyle reports whether a style is only looks.
func isPlainStyle(style string) bool {
	style = strings.ToLower(strings.ReplaceAll(style, "&quot;", ""))
	for _, code := range styleCode {
		if strings.Contains(style, code) {
			return false
		}
	}
	for i := range len(style) {
		switch c := style[i]; {
		case c == '(':
			if !slices.ContainsFunc(plainFunctions, func(name string) bool { return strings.HasSuffix(style[:i], name) }) {
				return false
			}
		case c >= 0x80 || isNameByte(c) || strings.IndexByte(" \t\r\n-:;,.%#)!'", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// isPlainAddress reports whether an address is of a page, an image or a mailbox, whatever its characters stand for.
func isPlainAddress(address string) bool {
	if strings.Contains(address, "&#") || strings.ContainsAny(address, "\\\t\r\n") {
		return false
	}
	lower := strings.ToLower(address)
	for _, first := range []string{"http://", "https://", "/", "#", "mailto:", "tel:"} {
		if strings.HasPrefix(lower, first) {
			return true
		}
	}
	return false
}

// isInlineImage reports whether a value is nothing but an image of pixels: it has only letters and digits.
func isInlineImage(value string) bool {
	kind, found := strings.CutPrefix(value, "data:image/")
	kind, data, isData := strings.Cut(kind, ";base64,")
	if !found || !isData || !slices.Contains([]string{"png", "jpeg", "jpg", "gif", "webp"}, kind) {
		return false
	}
	data = strings.TrimRight(data, "=")
	for i := range len(data) {
		if c := data[i]; !isNameByte(c) && c != '+' && c != '/' || c == '_' {
			return false
		}
	}
	return true
}
