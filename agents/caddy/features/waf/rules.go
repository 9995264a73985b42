package waf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/experimental"
	"github.com/corazawaf/coraza/v3/experimental/plugins"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/corazawaf/coraza/v3/types"

	"edge.svc/caddy/features/waf/bodies"
)

// The rule set of this program: its version, and the digest of its files as ruleFiles reads them. Another one is nobody's
// accident.
const (
	rulesVersion  = "4.25.0"
	rulesChecksum = "fd2444694c9280ef34f1aa1856e844eb81d74493581cf0bd7cf2b937cc521802"
)

const rulesFolder = "@owasp_crs"

// Rules of requests, but those of Apache's own requests, which trust the client's address.
const requestRules, apacheRules = "REQUEST-", "REQUEST-905-"

// setup is in front of the rule set. The engine gives scores and never interrupts; bodies are read by the package bodies. What
// a body cannot be read for weighs as much as an attack does, under the ids that the rule set once had for it.
const setup = `
SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecRequestBodyLimit 134217728
SecRequestBodyLimitAction ProcessPartial
SecResponseBodyAccess Off
SecAuditEngine Off
SecArgumentsLimit 256
SecDefaultAction "phase:1,log,noauditlog,pass"
SecDefaultAction "phase:2,log,noauditlog,pass"
SecAction "id:900990,phase:1,pass,t:none,nolog,setvar:tx.crs_setup_version=4250"
`

const bodyRules = `
SecRule REQBODY_ERROR "!@eq 0" "id:920130,phase:2,t:none,log,pass,msg:'The body cannot be read',severity:'CRITICAL',tag:'OWASP_CRS',tag:'paranoia-level/1',setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule MULTIPART_STRICT_ERROR "!@eq 0" "id:920140,phase:2,t:none,log,pass,msg:'The multipart body can be read in two ways',severity:'CRITICAL',tag:'OWASP_CRS',tag:'paranoia-level/1',setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
`

// leftOut are parts of requests that a rule takes for attacks wherever they are: the names of OData's own options, and what
// widespread counters of visitors keep in cookies of their own. To 942290, which looks for operators of MongoDB, anything that
// begins with one is one: "$initial_referrer" is "$in".
const leftOut = `
SecRuleUpdateTargetById 942290 "!ARGS_NAMES:$filter|!ARGS_NAMES:$top|!ARGS_NAMES:$orderby|!ARGS_NAMES:$expand"
SecRuleUpdateTargetById 942290 "!REQUEST_COOKIES:/^mp_[0-9a-f]+_mixpanel$/|!REQUEST_COOKIES:/^ph_[0-9a-z_]+_posthog$/"
`

// fillers stand where a rule has room for what a request leaves out of it: the engine appends that to the rule's own list,
// and where the list has room, requests at once would write to one place. No field and no cookie has such a name.
const fillers = `
SecRuleUpdateTargetById 920274 "!REQUEST_HEADERS:;7|!REQUEST_HEADERS:;8"
SecRuleUpdateTargetById 942290 "!REQUEST_COOKIES:;7|!REQUEST_COOKIES:;8"
SecRuleUpdateTargetById 942340 "!REQUEST_COOKIES:;4"
SecRuleUpdateTargetById 942420 "!REQUEST_COOKIES:;8"
SecRuleUpdateTargetById 942421 "!REQUEST_COOKIES:;13|!REQUEST_COOKIES:;14|!REQUEST_COOKIES:;15|!REQUEST_COOKIES:;16"
`

// ruleSet is all rules, built once and shared by all sites.
type ruleSet struct {
	waf coraza.WAF
	// Ids of the rules with a tag, ascending; not those that cannot be excluded.
	tagged map[string][]int
	// How long the patterns of one inspection may take.
	patternTime time.Duration
}

func init() {
	plugins.RegisterOperator("rx", newRx)
	plugins.RegisterOperator("detectSQLi", newDetectSQLi)
	plugins.RegisterOperator("pm", newWords)
	plugins.RegisterOperator("pmFromFile", newWordsOfFile)
	plugins.RegisterOperator("unless", newUnless)
	plugins.RegisterTransformation("urlDecodeUni", bodies.URLDecodeUni)
	plugins.RegisterTransformation("jsDecode", bodies.JSDecode)
}

// ruleFiles returns the names of the files that are loaded, in their order, and the digest of all files of the rule set.
func ruleFiles() (names []string, checksum string, err error) {
	entries, err := fs.ReadDir(coreruleset.FS, rulesFolder)
	if err != nil {
		return nil, "", err
	}
	digest := sha256.New()
	for _, e := range entries {
		name := rulesFolder + "/" + e.Name()
		content, err := fs.ReadFile(coreruleset.FS, name)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(digest, "%s %d\n%s", e.Name(), len(content), content)
		if strings.HasPrefix(e.Name(), requestRules) && !strings.HasPrefix(e.Name(), apacheRules) {
			names = append(names, name)
		}
	}
	return names, hex.EncodeToString(digest.Sum(nil)), nil
}

// buildRuleSet builds the rule set. The engine insists on a folder for temporary files that it can write to, TMPDIR, and
// uses none.
func buildRuleSet(patternTime time.Duration) (*ruleSet, error) {
	return buildRulesFrom(exceptedRules{leanRules{coreruleset.FS}}, patternTime)
}

func buildRulesFrom(files fs.FS, patternTime time.Duration) (*ruleSet, error) {
	names, checksum, err := ruleFiles()
	if err != nil {
		return nil, fmt.Errorf("cannot read the rule set: %w", err)
	}
	if checksum != rulesChecksum {
		return nil, fmt.Errorf("the rule set is not version %s; its checksum is %s", rulesVersion, checksum)
	}
	r := &ruleSet{tagged: map[string][]int{}, patternTime: patternTime}
	config := coraza.NewWAFConfig().WithRootFS(files).WithDirectives(setup)
	for _, name := range names {
		if strings.Contains(name, "REQUEST-949-") {
			config = config.WithDirectives(bodyRules)
		}
		config = config.WithDirectives("Include " + name)
	}
	config = experimental.WAFConfigWithRuleObserver(config.WithDirectives(leftOut).WithDirectives(fillers), r.note)
	if r.waf, err = coraza.NewWAF(config); err != nil {
		return nil, fmt.Errorf("cannot build the rule set: %w", err)
	}
	for tag, ids := range r.tagged {
		slices.Sort(ids)
		r.tagged[tag] = slices.Compact(ids)
	}
	return r, r.warm()
}

// warm compiles the patterns of the lowest level of paranoia, so that no request waits for them.
func (r *ruleSet) warm() error {
	tx := r.waf.NewTransaction()
	vars := tx.(plugintypes.TransactionState).Variables()
	tx.ProcessURI("/warm?a=b", "POST", "HTTP/1.1")
	for _, name := range []string{"Host", "User-Agent", "Referer", "Accept", "Content-Type"} {
		tx.AddRequestHeader(name, "text/warm")
	}
	vars.RequestCookies().Add("a", "b")
	tx.ProcessRequestHeaders()
	vars.ArgsPost().Add("a", "b")
	if _, err := tx.ProcessRequestBody(); err != nil {
		return err
	}
	return tx.Close()
}

// note remembers the tags of a rule.
func (r *ruleSet) note(rule types.RuleMetadata) {
	id := rule.ID()
	if id < firstRule || id > lastRule || excludable(uint32(id)) != nil {
		return
	}
	for _, tag := range rule.Tags() {
		r.tagged[tag] = append(r.tagged[tag], id)
	}
}
