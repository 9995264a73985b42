package waf

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordsOf makes a set of words.
func wordsOf(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

var (
	// proseWords are names of programs that texts use as words. Names that are no words, such as "wget", stay commands in any
	// text, and so do those that attacks use with a plain word: "cat", "echo", "id", "who".
	proseWords = wordsOf(`
		alias apropos batch bridge bundler cancel clang column comm compose composer compress crash crontab dash desk dialog
		done expand expect export facter fetch file find finger fish fold foreach function genie hash head highlight history
		install ionice java join journal knife last latex less link locate look mail make man more mosquito mosquitto mount
		nano nice node octave open paste patch perms pico post print prune puppet rake rename repeat replace rest rev route
		ruby run rust sash sched screen script sendmail service set shuf snap sort split squirrel strings task tasks timeout
		top touch trace trap troff unlink update upset view wall wish word yarn yelp zip
		assoc attrib boot control del dir excel explorer freedisk goto label microsoft msg offline path pause process query
		recover register remote reset san show start subst tracker type url vol
		dfs fc gal gu ise mi nal ni sal sc si te tee tracker winword`)
	// wrappers are those that run the program after them.
	wrappers = wordsOf("time watch command")
	// codeWords are conditions of cmd.exe, and in no text.
	codeWords = wordsOf("errorlevel cmdextversion")
	// longText is how many words a line needs beside lines that look like commands.
	longText = 6
)

// withoutProse returns a value in which names of programs in lines of prose are no words any more.
func withoutProse(value, raw string) string {
	// What escapes in the language of a command is in no prose, and some rules see values without it.
	if strings.Count(value, `\`) != strings.Count(raw, `\`) {
		return value
	}
	return inProse(value, withoutNames)
}

// withoutCapitals returns a value in which names with a capital letter in lines of prose are no words any more: "Perl" is no
// program of Unix, where names are as they are written.
func withoutCapitals(value, raw string) string {
	if value != withoutNamed(raw, raw) {
		return value
	}
	return inProse(value, func(line string) string {
		if lowers := lower.FindAllString(line, leastLower); len(lowers) == leastLower {
			line = capitals.ReplaceAllString(line, "x")
		}
		return capital.ReplaceAllString(line, "x")
	})
}

// leastLower is how many words in lower case a line has in which capitals mean something.
const leastLower = 3

var (
	lower    = regexp.MustCompile(`\b[a-z]{2,}\b`)
	capitals = regexp.MustCompile(`\b[A-Z]{2,}\b`)
)

// capital is a word with a capital letter, and lower case after it.
var capital = regexp.MustCompile(`\b[A-Z][a-z]+\b`)

// inProse changes the lines of a value that are prose.
func inProse(value string, change func(line string) string) string {
	lines := strings.SplitAfter(value, "\n")
	// Elements can go on in the next line.
	plain := lines
	if strings.ContainsAny(value, "<&") {
		plain = strings.SplitAfter(textMark.ReplaceAllStringFunc(value, func(mark string) string {
			return " " + strings.Repeat("\n", strings.Count(mark, "\n"))
		}), "\n")
	}
	prose, others := make([]bool, len(lines)), false
	for i, line := range plain {
		prose[i] = isProse(line)
		others = others || !prose[i] && strings.Trim(line, " \t\r\n=-") != ""
	}
	var out strings.Builder
	for i, line := range lines {
		if prose[i] && (!others || len(strings.Fields(plain[i])) >= longText) {
			line = change(line)
		}
		out.WriteString(line)
	}
	return out.String()
}

const (
	// What may stand before and after a word of prose.
	wordBegin, wordEnd = `(["'“„«»‘¿¡「『`, `.,:;!?)]"'”“»«’…。、，」』`
	// What joins two words to one.
	wordJoint = "-'’/&_"
	// What stands between words, alone.
	proseMarks = "& | - -- – — • · ; : -> “ ” ‘ ’"
	// Marks of sentences between letters, in scripts without spaces. Nothing takes them for others.
	ideographic = "、。，「」『』・《》〈〉【】〜"
	longestMark = 3
	// What stands before an item or a heading.
	itemMarks = "* + # ## ### ####"
)

// textMark is an element of a text with attributes that only name or link, or a character that HTML writes by its name.
var textMark = regexp.MustCompile(`</?(?:a|b|blockquote|br|code|dd|div|dl|dt|em|figcaption|figure|h[1-6]|hr|i|li|ol|p|pre|s|section|small|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)` +
	`(?:\s+(?:class|href|id|lang|rel|target|title)="[\pL\pM\d\s\x{a0}_.,:/#?=%+~@’“”«»()-]*")*\s?/?>|` +
	`&(?:amp|nbsp|quot|lt|gt|[lr][sd]quo|[mn]dash|hellip|eacute|[aouAOU]uml|szlig|#\d{2,4});`)

// declaration is a word of a style, which stands beside its element.
var declaration = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)*:(?:#?[\w.%-]+|(?:rgba?|hsla?|var)\([\w.%-]+[,)]?)?;?$|^\d+(?:\.\d+)?(?:px|r?em|pt|%|v[hw])[,;)]*$`)

// isProse reports whether a line without elements has only words, numbers and the marks of sentences.
func isProse(line string) bool {
	words := 0
	for i, token := range strings.Fields(line) {
		// Most tokens are words, and need no pattern.
		if ('0' <= token[0] && token[0] <= '9' || strings.IndexByte(token, ':') > 0) && declaration.MatchString(token) || i == 0 && strings.Contains(" "+itemMarks+" ", " "+token+" ") {
			continue
		}
		if isMark(token) {
			// A command in the background, or a list of them, begins with one.
			if i == 0 && (token == "&" || token == "|" || token == ";") {
				return false
			}
			continue
		}
		word := strings.TrimRight(strings.TrimLeft(token, wordBegin), wordEnd)
		switch {
		case strings.ContainsAny(token, "./(") && (nameLike.MatchString(word) || emptyCall.MatchString(token)):
			words++
		case word == "" && token != "":
			if strings.Trim(token, ".,!?…()") != "" {
				return false
			}
		case isNumber(word):
		case !isWord(word) || !areOrdinary(token, word):
			return false
		default:
			words++
		}
	}
	return words > 0
}

// nameLike is what texts name and no shell runs as it is: an abbreviation, a version, a function with empty parentheses or a
// page of a manual.
var nameLike = regexp.MustCompile(`^(?:\pL\.){1,4}\pL?$|^\pL[\pL_-]*\d+(?:\.\d+)+(?:_\d+)?$|^\p{Lu}/\p{Lu}$`)

// emptyCall is a function as texts name it.
var emptyCall = regexp.MustCompile(`^[("'“]*[A-Za-z_]\w*\(\d?\)[.,:;!?)"'”]*$`)

func isMark(token string) bool {
	return len(token) <= longestMark && strings.Contains(" "+proseMarks+" ", " "+token+" ")
}

// areOrdinary reports whether what stands around a word stands around words of texts: quotes come in pairs, and never in
// front of the name of a program alone.
func areOrdinary(token, word string) bool {
	before, after, _ := strings.Cut(token, word)
	return len(before) <= 4 && len(after) <= 6 && !strings.ContainsAny(before, ";|&")
}

// isWord reports whether a token has only letters and digits, with what joins them.
func isWord(word string) bool {
	joint := true
	for _, r := range word {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
			joint = false
		case strings.ContainsRune(ideographic, r):
		case joint || !strings.ContainsRune(wordJoint, r):
			return false
		default:
			joint = true
		}
	}
	if joint || strings.Count(word, "/") > 1 || codeWords[strings.ToLower(word)] {
		return false
	}
	// "and/or", never "bin/sh".
	if before, after, found := strings.Cut(word, "/"); found {
		return utf8.RuneCountInString(before) > 1 && !isProgram(after)
	}
	return true
}

// isProgram reports whether a word is the name of a shell.
func isProgram(word string) bool {
	word = strings.ToLower(word)
	return strings.HasSuffix(word, "sh") || word == "passwd" || word == "shadow" || word == "hosts"
}

// isNumber reports whether a token is a number, an amount, a date or a time.
func isNumber(word string) bool {
	digits := 0
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case strings.ContainsRune(".,:/-%#€£+", r):
		default:
			return false
		}
	}
	return digits > 0 && word[0] != '/' && word[0] != '-'
}

// functionWords are words that join others in sentences. No program has a use for one as its first operand. "Who" is none
// of them, because it is a program.
var functionWords = wordsOf(`
	a an the this that these those it its he she they we you i is are was were be been has have had does did do can could will would
	may might must shall should and or but nor not if then else when while where which whose what how why because as at by for from in
	into of off on onto over to under up with without within than so also only just both either each every some any no all more most such
	there here their your our my his her
	der die das den dem des ein eine einen einem einer ist sind war wird werden wurde hat haben kann können und oder nicht im am zu zur zum von vom mit für auf aus bei nach als auch
	le la les un une des du est sont et ou ne pas dans sur pour par avec que qui se ce cette aux
	el los las una unos es son y o no en con por para que se al del lo su
	il gli uno di da nel della dei è sono e che non per si
	os um uma de do dos das é são em na não com ao
	jest są w z na do i nie się że używa`)

// withoutNames replaces names of programs in a line of prose, and whatever has a function word after it. What runs another
// program becomes what ends a command: the program after it stays one.
func withoutNames(line string) string {
	var out strings.Builder
	long := len(strings.Fields(line)) >= longText
	for line != "" {
		r, size := utf8.DecodeRuneInString(line)
		if !isWordByte(r) {
			out.WriteString(line[:size])
			line = line[size:]
			continue
		}
		end := strings.IndexFunc(line, func(r rune) bool { return !isWordByte(r) })
		if end < 0 {
			end = len(line)
		}
		switch word := strings.ToLower(line[:end]); {
		case wrappers[word]:
			out.WriteString(";")
		case proseWords[word] || long && functionWords[nextWord(line[end:])]:
			out.WriteString("x")
		default:
			out.WriteString(line[:end])
		}
		line = line[end:]
	}
	return out.String()
}

// nextWord is the word after a space, in lower case.
func nextWord(rest string) string {
	trimmed := strings.TrimLeft(rest, " \t")
	if len(trimmed) == len(rest) {
		return ""
	}
	if end := strings.IndexFunc(trimmed, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		if r, _ := utf8.DecodeRuneInString(trimmed[end:]); !strings.ContainsRune(" ,.:;!?\r\n\t", r) {
			return ""
		}
		trimmed = trimmed[:end]
	}
	return strings.ToLower(trimmed)
}

func isWordByte(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// withoutArrows returns a value without what the shell takes for a process only where no space follows: "-> (Settings)". A
// rule sees it without the space, and without quotes.
func withoutArrows(value, raw string) string {
	if raw = unquoting.Replace(raw); unspaced(raw) && unspaced(noProcess.ReplaceAllString(raw, "$1 (")) {
		return value
	}
	return spacing.Replace(value)
}

var (
	unquoting = strings.NewReplacer(`"`, "", "'", "", "^", "", `\`, "")
	spacing   = strings.NewReplacer(">(", "> (", "<(", "< (")
)

// noProcess is what would be a process if a number, or a word of other letters than programs have, were a program: "</b>(8)".
var noProcess = regexp.MustCompile(`([<>])\((?:\d+|[\pL\pN]*[^\x00-\x7f\pZ\pC][\pL\pN]*)(?: [\pL\pN]+)*\)`)

// unspaced reports whether a process can begin in a text.
func unspaced(text string) bool { return strings.Contains(text, ">(") || strings.Contains(text, "<(") }
