package bodies

import (
	"io/fs"
	"regexp"
	"sync"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/wasilibs/go-re2"
	re2bytes "github.com/wasilibs/go-re2/experimental"
)

// commandRule finds the rules that know a command by the beginning of a value, and their patterns.
var commandRule = regexp.MustCompile(`(?m)^SecRule \S+ "@rx (.*)" \\\n    "id:(?:932250|932260),\\$`)

// commandFile has these rules.
const commandFile = "@owasp_crs/REQUEST-932-APPLICATION-ATTACK-RCE.conf"

// commandHead is how much of a text tells whether it is a command.
const commandHead = 64

// commandPatterns are the patterns of these rules, none where the rule set has none.
var commandPatterns = sync.OnceValue(func() (all []*re2.Regexp) {
	content, err := fs.ReadFile(coreruleset.FS, commandFile)
	if err != nil {
		return nil
	}
	for _, found := range commandRule.FindAllSubmatch(content, -1) {
		if p, err := re2bytes.CompileLatin1("(?s)" + string(found[1])); err == nil {
			all = append(all, p)
		}
	}
	return all
})

// isCommand reports whether rules take a value that begins like this for a command.
func isCommand(text string) bool {
	text = text[:min(len(text), commandHead)]
	for _, p := range commandPatterns() {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}
