//go:build !race

package waf

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Whether a text is for readers alone. Its author decides: what is marked as code, an option or a file is no prose.
const (
	prose = "prose"
	// Text with words that are marked as code.
	mixed = "mixed"
	code  = "code"
)

// ownedText is a text with what its author takes it for.
type ownedText struct{ kind, text string }

// textSource is a kind of text that others wrote and packages ship: none of it was chosen for this rule set.
type textSource struct {
	name string
	file *regexp.Regexp
	// split divides a file into texts.
	split func(content string) []ownedText
}

// languages are those of translations, beside English.
const languages = `(?:de|es|fr|it|ja|nl|pl|pt|pt_BR|ru|sv|tr|zh_CN)`

var textSources = []textSource{
	{"licenses", regexp.MustCompile(`/common-licenses/|/copyright$`), licenses},
	{"man pages", regexp.MustCompile(`/man/(?:` + languages + `/)?man\d/.*\.gz$`), manPages},
	{"fortunes", regexp.MustCompile(`/games/fortunes/`), fortunes},
	{"translations", regexp.MustCompile(`/` + languages + `/LC_MESSAGES/[^/]+\.mo$`), translations},
	{"HTML", regexp.MustCompile(`/doc/(?:debian|jargon|mutt)[^/]*/.*\.html$|/(?:debian|developers)-reference/.*\.html$`), htmlPages},
	{"help", regexp.MustCompile(`/help/(?:C|` + languages + `)/.*\.page$`), helpPages},
	{"pod", regexp.MustCompile(`\.pod$`), pods},
	{"changelogs", regexp.MustCompile(`(?i)/(?:changelog|history|changes)[^/]*\.md$|/(?:changelog|NEWS)[^/]*\.gz$`), markdown},
	{"markdown", regexp.MustCompile(`(?i)/(?:readme|contributing)[^/]*\.md$`), markdown},
	{"mails", regexp.MustCompile(`/git-doc/howto/[^/]+\.txt$|/sample-(?:non)?spam\.txt$`), mails},
}

const (
	textsOfFile, textsOfSource = 60, 6000
	leastText, mostText        = 30, 4000
)

// read returns the texts of a source below some folders, by kinds: the same in each run, of each file only some.
func (s *textSource) read(roots []string) map[string][]string {
	seen, texts := map[string]bool{}, map[string][]string{}
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !s.file.MatchString(filepath.ToSlash(path)) {
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.HasSuffix(path, ".gz") {
				if r, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
					content, _ = io.ReadAll(r)
				}
			}
			of := 0
			for _, t := range s.split(strings.ReplaceAll(string(content), "\r\n", "\n")) {
				t.text = strings.TrimSpace(t.text)
				if len(t.text) < leastText || len(t.text) > mostText || !utf8.ValidString(t.text) || strings.ContainsAny(t.text, "\x00\b\x1b") || seen[t.text] || of >= textsOfFile {
					continue
				}
				seen[t.text] = true
				of++
				texts[t.kind] = append(texts[t.kind], t.text)
			}
			return nil
		})
	}
	for kind, all := range texts {
		texts[kind] = byHash(all)[:min(len(all), textsOfSource)]
	}
	return texts
}

var emptyLines = regexp.MustCompile(`\n\s*\n`)

func paragraphs(text string) []string { return emptyLines.Split(text, -1) }

// allOf gives texts one kind each.
func allOf(texts []string, kindOf func(string) string) (all []ownedText) {
	for _, text := range texts {
		if kind := kindOf(text); kind != "" {
			all = append(all, ownedText{kind, text})
		}
	}
	return all
}

var stanza = regexp.MustCompile(`^(?:Files|Format):`)

// licenses are paragraphs of licenses, without lists of files.
func licenses(text string) []ownedText {
	return allOf(paragraphs(text), func(p string) string {
		if stanza.MatchString(p) {
			return ""
		}
		return prose
	})
}

// fortunes are quotations, one after another.
func fortunes(text string) []ownedText {
	if strings.HasPrefix(text, "\x00\x00\x00") {
		return nil
	}
	return allOf(strings.Split(text, "\n%\n"), func(string) string { return prose })
}

var (
	roffCode  = regexp.MustCompile(`(?ms)^\.(?:nf|EX)\b.*?^\.(?:fi|EE)\b`)
	roffMarks = regexp.MustCompile(`(?m)\\f[BICR(]|^\.(?:B|I|BR|IR|RB|BI|RI|IB|SB|TP|TQ|IP|SM|EX|nf|UR|MT)\b|^\.[A-Z][a-z]\b`)
	// What ends a paragraph.
	roffBreak   = regexp.MustCompile(`(?m)^\.(?:PP|P|LP|SH|SS|TP|TQ|IP|RS|RE|sp|br|TH)\b.*$|^\.\\".*$|^'.*$`)
	roffRequest = regexp.MustCompile(`(?m)^\.\s*[a-z]|^'`)
	roffFont    = regexp.MustCompile(`\\f(?:\(..|\[[^]]*\]|.)|\\s[+-]?\d|\\[&|/^cu{}]|\\[hvw]'[^']*'|\\".*`)
	roffMacro   = regexp.MustCompile(`(?m)^\.(\w*)[ \t]*`)
	roffEscape  = strings.NewReplacer(`\-`, "-", `\e`, `\`, `\*(L"`, "“", `\*(R"`, "”", `\*(Aq`, "'", `\*(C`, "", `\(aq`, "'", `\(dq`, `"`, `\(lq`, "“", `\(rq`, "”", `\(em`, "—", `\(en`, "–", `\(bu`, "•", `\~`, " ", `\ `, " ", `\0`, " ", `\[aq]`, "'", `\(co`, "©", `\(cq`, "’", `\(oq`, "‘")
)

// manPages are paragraphs of manual pages. Fonts mark options, files and commands in them.
func manPages(text string) (all []ownedText) {
	plain := func(text string) string {
		return roffEscape.Replace(roffFont.ReplaceAllString(roffMacro.ReplaceAllString(text, ""), ""))
	}
	for _, block := range roffCode.FindAllString(text, -1) {
		all = append(all, ownedText{code, plain(block)})
	}
	for _, paragraph := range roffBreak.Split(roffCode.ReplaceAllString(text, "\n.PP\n"), -1) {
		kind := prose
		if roffMarks.MatchString(paragraph) {
			kind = mixed
		}
		// Other requests calculate.
		if roffRequest.MatchString(paragraph) {
			continue
		}
		if paragraph = plain(paragraph); strings.Count(paragraph, " ") > 3 && !strings.Contains(paragraph, `\`) {
			all = append(all, ownedText{kind, paragraph})
		}
	}
	return all
}

// catalogueBegin is what catalogues of gettext begin with.
const catalogueBegin = 0x950412de

// translations are the texts of a compiled catalogue of gettext.
func translations(text string) (all []ownedText) {
	content := []byte(text)
	if len(content) < 28 || binary.LittleEndian.Uint32(content) != catalogueBegin {
		return nil
	}
	count, table := binary.LittleEndian.Uint32(content[8:]), binary.LittleEndian.Uint32(content[16:])
	// The first one is the header of the catalogue.
	for i := uint32(1); i < count; i++ {
		at := uint64(table) + uint64(i)*8
		if at+8 > uint64(len(content)) {
			break
		}
		length, from := uint64(binary.LittleEndian.Uint32(content[at:])), uint64(binary.LittleEndian.Uint32(content[at+4:]))
		if from+length <= uint64(len(content)) {
			all = append(all, ownedText{prose, string(content[from : from+length])})
		}
	}
	return all
}

var (
	htmlBlock = regexp.MustCompile(`(?s)<(?:p|li|dd|blockquote|pre)\b[^>]*>.*?</(?:p|li|dd|blockquote|pre)>`)
	htmlCode  = regexp.MustCompile(`<(?:code|tt|kbd|samp|var|pre)\b|class="[^"]*(?:command|option|file|code|pre)`)
	anyTag    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// htmlPages are paragraphs of pages as an editor sends them, with their markup.
func htmlPages(text string) []ownedText {
	return allOf(htmlBlock.FindAllString(text, -1), func(block string) string {
		switch {
		case strings.HasPrefix(block, "<pre"):
			return code
		case htmlCode.MatchString(block):
			return mixed
		}
		return prose
	})
}

var (
	helpBlock = regexp.MustCompile(`(?s)<(p|screen|code)(?:\s[^>]*)?>(.*?)</(?:p|screen|code)>`)
	helpCode  = regexp.MustCompile(`<(?:cmd|code|file|input|output|sys|var)\b`)
)

// helpPages are paragraphs of a desktop's help, as text.
func helpPages(text string) (all []ownedText) {
	for _, block := range helpBlock.FindAllStringSubmatch(text, -1) {
		kind := prose
		if block[1] != "p" {
			kind = code
		} else if helpCode.MatchString(block[2]) {
			kind = mixed
		}
		all = append(all, ownedText{kind, html.UnescapeString(anyTag.ReplaceAllString(block[2], ""))})
	}
	return all
}

var podMark = regexp.MustCompile(`[A-Z]<`)

// pods are paragraphs of Perl's documentation. Indented ones are code.
func pods(text string) []ownedText {
	return allOf(paragraphs(text), func(p string) string {
		switch {
		case strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t"):
			return code
		case strings.HasPrefix(p, "="):
			return ""
		case podMark.MatchString(p):
			return mixed
		}
		return prose
	})
}

var fence = regexp.MustCompile("(?s)```.*?```|~~~.*?~~~")

// markdown are paragraphs of Markdown, and of changelogs. Fenced and indented ones are code.
func markdown(text string) (all []ownedText) {
	for _, block := range fence.FindAllString(text, -1) {
		_, block, _ = strings.Cut(block[:len(block)-3], "\n")
		all = append(all, ownedText{code, block})
	}
	return append(all, allOf(paragraphs(fence.ReplaceAllString(text, "\n\n")), func(p string) string {
		switch {
		case strings.HasPrefix(p, "    ") || strings.HasPrefix(p, "\t"):
			return code
		case strings.Contains(p, "`"):
			return mixed
		}
		return prose
	})...)
}

// mails are paragraphs of messages, without their headers. Indented ones are code, and so are headers of parts.
func mails(text string) []ownedText {
	_, body, _ := strings.Cut(text, "\n\n")
	return allOf(paragraphs(body), func(p string) string {
		switch {
		case strings.HasPrefix(p, "  ") || strings.HasPrefix(p, "\t") || strings.Contains(strings.ToLower(p), "content-type:"):
			return code
		case strings.Contains(p, "`"):
			return mixed
		}
		return prose
	})
}
