package waf

import (
	"bytes"
	"cmp"
	encoding "encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/experimental"
	"github.com/corazawaf/coraza/v3/types"
)

const ruleTextFile = "../../../../contract/waf-rules.json"

// ruleText is what people read of a rule.
type ruleText struct {
	ID       int    `json:"id"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	// The lowest paranoia level at which it runs.
	Paranoia int `json:"paranoia"`
	// Those that tell what it is about, divided by spaces.
	Tags string `json:"tags"`
}

var messageOf = regexp.MustCompile(`msg:'((?:[^'\\]|\\.)*)'`)

// Tags of each rule, or numbers of other registers.
var sayNothing = regexp.MustCompile(`^(OWASP_CRS.*|paranoia-level/\d|capec/.*|.*-multi)$`)

func textOf(rule types.RuleMetadata) (ruleText, bool) {
	id := rule.ID()
	message := messageOf.FindStringSubmatch(rule.Raw())
	if id < firstRule || id > lastRule || excludable(uint32(id)) != nil || message == nil {
		return ruleText{}, false
	}
	told := ruleText{ID: id, Message: strings.ReplaceAll(message[1], `\'`, `'`), Severity: rule.Severity().String(), Paranoia: 1}
	var tags []string
	for _, tag := range rule.Tags() {
		if level, found := strings.CutPrefix(tag, "paranoia-level/"); found {
			told.Paranoia, _ = strconv.Atoi(level)
		}
		if !sayNothing.MatchString(tag) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	told.Tags = strings.Join(tags, " ")
	return told, true
}

func ruleTexts() ([]byte, error) {
	names, _, err := ruleFiles()
	if err != nil {
		return nil, err
	}
	config := coraza.NewWAFConfig().WithRootFS(coreruleset.FS).WithDirectives(setup).WithDirectives(bodyRules)
	for _, name := range names {
		config = config.WithDirectives("Include " + name)
	}
	var all []ruleText
	config = experimental.WAFConfigWithRuleObserver(config, func(rule types.RuleMetadata) {
		if told, found := textOf(rule); found {
			all = append(all, told)
		}
	})
	if _, err := coraza.NewWAF(config); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ruleText) int { return cmp.Compare(a.ID, b.ID) })
	var written bytes.Buffer
	encoder := encoding.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return nil, fmt.Errorf("writing texts of rules: %w", err)
	}
	return written.Bytes(), nil
}

// The console shows what each rule is. SVC_WRITE_RULES=1 writes the file again, after a change of the rule set.
func TestTheContractHasTheTextOfEachRule(t *testing.T) {
	want, err := ruleTexts()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SVC_WRITE_RULES") == "1" {
		if err := os.WriteFile(ruleTextFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	told, err := os.ReadFile(ruleTextFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(told, want) {
		t.Errorf("%s is not of this rule set: run this test with SVC_WRITE_RULES=1", ruleTextFile)
	}
}
