package waf

import (
	"regexp"
	"strings"
)

var (
	// webAddress is a URL of a host with a name, without its query. Rules see it with one slash where there were two.
	webAddress = regexp.MustCompile(`(?i)\b(?:https?|wss?):/{1,2}(?:[\pL\pN-]+\.)+\pL{2,24}(?::\d{1,5})?(?:/[^\s"'<>\\^` + "`" + `;|?#]*)?`)
	// hostName is a name of a host in a domain that has three labels, or the address of a mailbox.
	hostName = regexp.MustCompile(`(?i)(?:^|[\s,(<"':=])(?:[a-z0-9](?:[a-z0-9.+_-]*[a-z0-9])?@(?:[a-z0-9-]+\.)+|(?:[a-z0-9-]+\.){2,})[a-z]{2,24}(?:[\s,)>"';:]|$)`)
	// doubted is what a URL has that is read in two ways, or leaves its folder.
	doubted = regexp.MustCompile(`(?i)\.\.|%2[ef5]|%5c|%00|/\.`)
	// fileEnds are last labels that names of files have, and domains have not.
	fileEnds = wordsOf("php php3 php5 phtml ini conf cnf cfg config json yml yaml xml toml sql bak old swp env log asp aspx jsp rb pl py inc dist tar gz rar zip db sqlite pem key txt history passwd shadow profile")
)

// withoutDots returns a value without the dots in names of hosts and in paths of URLs. A dot after a letter begins no name
// of a hidden file.
func withoutDots(value, _ string) string {
	value = webAddress.ReplaceAllStringFunc(value, func(address string) string {
		if doubted.MatchString(address) {
			return address
		}
		return withoutInnerDots(address)
	})
	return hostName.ReplaceAllStringFunc(value, func(name string) string {
		trimmed := strings.TrimRight(name, " \t\r\n,)>\"';:")
		if strings.Contains(name, "..") || fileEnds[strings.ToLower(trimmed[strings.LastIndexByte(trimmed, '.')+1:])] {
			return name
		}
		return withoutInnerDots(name)
	})
}

// withoutInnerDots replaces dots between letters or digits.
func withoutInnerDots(text string) string {
	out := []byte(text)
	for i := 1; i+1 < len(out); i++ {
		if out[i] == '.' && isNameByte(out[i-1]) && isNameByte(out[i+1]) {
			out[i] = '-'
		}
	}
	return string(out)
}

func isNameByte(c byte) bool {
	return '0' <= c && c <= '9' || isLetter(rune(c)) || c == '_' || c == '-'
}

var localBegin = regexp.MustCompile(`(?i)(://local)(host[a-z0-9-]+\.[a-z]|test\.me[a-z0-9-]*\.[a-z]|test\.me[a-z0-9-])`)

// withoutLongerHosts returns a value without hosts whose names only begin with that of the machine itself.
func withoutLongerHosts(value, _ string) string {
	return localBegin.ReplaceAllString(value, "$1-$2")
}

// withoutQuestions returns a value without the mark at its end if it is a sentence: it has spaces, and no URL.
func withoutQuestions(value, raw string) string {
	if !strings.Contains(strings.TrimSpace(raw), " ") || strings.Contains(raw, "://") || !isProse(raw) {
		return value
	}
	return strings.TrimRight(value, "? \t\r\n")
}
