package waf

import (
	"io/fs"
	"regexp"
	"strings"
)

// untold are the texts of rules for logs. Nobody logs them here, and the engine makes those of each rule anew for every
// request.
var untold = regexp.MustCompile(`(?m)^[ \t]+(?:msg|logdata|ver):'(?:[^'\\]|\\.)*',\\\n`)

// leanRules are the files of the rule set without what is for logs.
type leanRules struct{ fs.FS }

// ReadFile reads a file of rules, or any other as it is.
func (l leanRules) ReadFile(name string) ([]byte, error) {
	content, err := fs.ReadFile(l.FS, name)
	if err == nil && strings.HasSuffix(name, ".conf") {
		content = untold.ReplaceAll(content, nil)
	}
	return content, err
}
