package waf

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// contractOf returns what stands between two texts in the file of the console that tells of the rule set.
func contractOf(t *testing.T, from, until string) string {
	t.Helper()
	source, err := os.ReadFile("../../../../contract/waf-rule-set.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(source), from)
	text, _, ended := strings.Cut(rest, until)
	if !found || !ended {
		t.Fatalf("no %q", from)
	}
	return text
}

var pair = regexp.MustCompile(`'?([\w/-]+)'?: (\d+)`)

func numbers(text string) map[string]int {
	found := map[string]int{}
	for _, m := range pair.FindAllStringSubmatch(text, -1) {
		found[m[1]], _ = strconv.Atoi(m[2])
	}
	return found
}

// The console refuses what nodes would, and shows what they do.
func TestTheContractTellsOfThisRuleSet(t *testing.T) {
	rules, err := component.Of(sharedCore()).need()
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]int{}
	for tag, ids := range rules.tagged {
		tags[tag] = len(ids)
	}
	if told := numbers(contractOf(t, "WAF_TAGS: Readonly<Record<string, number>> = {", "};")); !maps.Equal(told, tags) {
		t.Errorf("tags are %v, not %v", tags, told)
	}
	if told := contractOf(t, "WAF_RULE_SET_VERSION = '", "'"); told != rulesVersion {
		t.Errorf("the version is %s, not %s", rulesVersion, told)
	}
	if told := contractOf(t, "WAF_RULE_SET_CHECKSUM = '", "'"); told != rulesChecksum {
		t.Errorf("the checksum is %s, not %s", rulesChecksum, told)
	}
	words := regexp.MustCompile(`'([^']+)'`)
	for name, list := range map[string][]string{
		"WAF_METHODS": defaultMethods, "WAF_CONTENT_TYPES": defaultTypes, "WAF_CHARSETS": defaultCharsets,
	} {
		var told []string
		for _, m := range words.FindAllStringSubmatch(contractOf(t, name+" = [", "]"), -1) {
			told = append(told, m[1])
		}
		if !slices.Equal(told, list) {
			t.Errorf("%s are %q, not %q", name, list, told)
		}
	}
	parts := map[string]int{}
	for part, collections := range partVariables {
		parts[strings.ToLower(strings.TrimPrefix(configv1.WafPart_name[int32(part)], "WAF_PART_"))] = max(1, len(collections))
	}
	if told := numbers(contractOf(t, "WAF_PARTS = {", "}")); !maps.Equal(told, parts) {
		t.Errorf("parts are %v, not %v", parts, told)
	}
	if told := strings.ReplaceAll(contractOf(t, "MAX_WAF_TARGETS = ", ";"), "_", ""); told != strconv.Itoa(maxExclusionTargets) {
		t.Errorf("targets are at most %d, not %s", maxExclusionTargets, told)
	}
	families := slices.Sorted(maps.Keys(ownFamilies))
	if told := contractOf(t, "WAF_OWN_FAMILIES: readonly number[] = [", "]"); told != strings.Trim(strings.ReplaceAll(fmt.Sprint(families), " ", ", "), "[]") {
		t.Errorf("families are %v, not %s", families, told)
	}
}
