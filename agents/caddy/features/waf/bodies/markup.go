package bodies

import (
	stdjson "encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// To rules every attribute style or src is an attack, and so is every comment: articles from any editor of texts have them.
// They see what is surely harmless of it as text beside its element: nothing is hidden from them but that it was markup.
var (
	plainElements = []string{
		"a", "abbr", "address", "article", "aside", "audio", "b", "blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del", "details",
		"div", "dl", "drupal-entity", "drupal-media", "dt", "em", "figcaption", "figure", "font", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i",
		"img", "ins", "kbd", "li", "main", "mark", "nav", "oembed", "ol", "p", "picture", "pre", "q", "s", "samp", "section", "small", "source", "span", "strong",
		"sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time", "tr", "u", "ul", "video", "wbr",
	}
	// There are rules for them alone.
	mediaElements = []string{"audio", "img", "source", "video"}
	// Attributes without a value.
	plainSwitches   = []string{"autoplay", "controls", "loop", "muted", "open", "playsinline", "reversed"}
	plainAttributes = []string{
		"align", "alt", "autoplay", "bgcolor", "border", "cellpadding", "cellspacing", "cite", "class", "color", "colspan", "controls", "crossorigin", "datetime",
		"decoding", "dir", "face", "fetchpriority", "height", "href", "hreflang", "id", "lang", "loading", "loop", "media", "muted", "playsinline", "poster",
		"preload", "rel", "role", "rowspan", "scope", "size", "sizes", "src", "srcset", "start", "style", "target", "title", "type", "url", "valign", "width",
	}
	// Attributes whose values are addresses.
	addressAttributes = []string{"cite", "href", "url"}
	// Functions that a style may have.
	plainFunctions = []string{
		"rgb", "rgba", "hsl", "hsla", "calc", "min", "max", "var", "clamp", "minmax", "repeat", "translate", "translatex", "translatey", "rotate", "scale",
		"linear-gradient", "radial-gradient", "blur", "brightness",
	}
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

// readComment reads a comment by which an editor marks a place or a block of an article; length is 0 where there is none.
func readComment(text string) (plain string, length int) {
	const first, last = "<!--", "-->"
	inside, found := strings.CutPrefix(text, first)
	if !found {
		return "", 0
	}
	end := strings.Index(inside, last)
	if end < 0 || strings.ContainsAny(inside[:end], "<>") || strings.Contains(inside[:end], "--") {
		return "", 0
	}
	length, inside = len(first)+end+len(last), inside[:end]
	if isPlainComment(inside) {
		return " " + inside + " ", length
	}
	inside = strings.TrimSpace(inside)
	if !strings.HasPrefix(inside, "wp:") && !strings.HasPrefix(inside, "/wp:") {
		return "", 0
	}
	name, settings, _ := strings.Cut(inside, " ")
	settings = strings.TrimSpace(strings.TrimSuffix(settings, "/"))
	if settings == "" {
		return " " + name + " ", length
	}
	texts, ok := jsonTexts(settings)
	if !ok {
		return " " + inside + " ", length
	}
	return " " + name + texts + " ", length
}

// isPlainComment reports whether a comment is only words, with marks that join them. Conditions of editors of texts are, too:
// "[if !supportLists]".
func isPlainComment(text string) bool {
	switch strings.TrimSpace(text) {
	case "[if !supportLists]", "[if !supportEmptyParas]", "[if !supportLineBreakNewLine]", "[endif]":
		return true
	}
	words := false
	for i, r := range text {
		switch {
		case unicode.IsLetter(r):
			words = true
		case strings.ContainsRune("-_/@'", r):
			// Between letters or digits.
			if i == 0 || i+1 == len(text) || !isNameByte(text[i-1]) || !isNameByte(text[i+1]) || strings.HasPrefix(text, "/wp:") {
				return false
			}
		case !unicode.IsDigit(r) && !strings.ContainsRune(" .,!?:\r\n", r):
			return false
		}
	}
	return words
}

// jsonTexts returns names and texts of one document of JSON, each as text of its own.
func jsonTexts(text string) (texts string, ok bool) {
	if !BeginsLikeJSON(text) || !stdjson.Valid([]byte(text)) {
		return "", false
	}
	var out strings.Builder
	for d := stdjson.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return out.String(), true
		}
		if s, isText := token.(string); isText && s != "" {
			out.WriteString(" x ")
			out.WriteString(s)
		}
	}
}

// readElement reads the beginning of an element that has a style or an address; length is 0 where it is anything else, or
// has anything that may be more than looks.
func readElement(text string) (plain string, length int) {
	at := 1
	for at < len(text) && (isNameByte(text[at]) || text[at] == '-') {
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
		case "srcset":
			if !media || !isPlainSet(value) {
				return "", 0
			}
			beside = append(append(append(beside, ' '), value...), ' ')
		case "src", "poster":
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
			if slices.Contains(addressAttributes, attribute) && !isPlainAddress(value) {
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
	if !isData {
		data, isData = strings.CutPrefix(name, "aria-")
	}
	if !slices.Contains(plainAttributes, name) && !(isData && IsToken(data)) {
		return "", "", 0
	}
	quote := text[equals+1]
	if quote != '"' && quote != '\'' {
		// Some editors have no quotes around one word.
		rest := text[equals+1:]
		end := 0
		for end < len(rest) && isNameByte(rest[end]) {
			end++
		}
		if end == 0 || end == len(rest) || strings.IndexByte(" >", rest[end]) < 0 {
			return "", "", 0
		}
		return name, rest[:end], equals + 1 + end
	}
	value, _, ended := strings.Cut(text[equals+2:], string(quote))
	if !ended || strings.ContainsAny(value, "<>`") {
		return "", "", 0
	}
	return name, value, equals + 2 + len(value) + 1
}

// imageOf is a picture in a style.
var imageOf = regexp.MustCompile(`\burl\(\s*(['"]?)(?:https?://|/)[\w./%~@+-]*['"]?\s*\)`)

// isPlainStyle reports whether a style is only looks.
func isPlainStyle(style string) bool {
	style = strings.ToLower(strings.ReplaceAll(style, "&quot;", ""))
	style = imageOf.ReplaceAllString(style, "")
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
		case c >= 0x80 || isNameByte(c) || strings.IndexByte(" \t\r\n-:;,.%#)!'\"+*/", c) >= 0:
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
	return relative.MatchString(address)
}

// relative is an address below a page.
var relative = regexp.MustCompile(`^[\w@][\w@%.-]*(?:/[\w@%.~-]*)+(?:[?#]|$)|^[\w@][\w@%-]*\.[a-zA-Z0-9]{2,5}(?:[?#]|$)`)

// isPlainSet reports whether a value is addresses of images for several sizes.
func isPlainSet(value string) bool {
	for item := range strings.SplitSeq(value, ",") {
		address, _, _ := strings.Cut(strings.TrimSpace(item), " ")
		if !isPlainAddress(address) {
			return false
		}
	}
	return true
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
