package ruletest

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Rule is a rule for all requests, in the phase in which its action stands. Ids are made by Site and Platform where they
// are missing.
func Rule(action any) *configv1.Rule { return When(True(), action) }

// When is a rule with a condition.
func When(condition Node, action any) *configv1.Rule {
	r := &configv1.Rule{Condition: Encode(condition)}
	switch a := action.(type) {
	case *configv1.BlockAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_WAF_CUSTOM, &configv1.Rule_Block{Block: a}
	case *configv1.LogAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_WAF_CUSTOM, &configv1.Rule_Log{Log: a}
	case *configv1.AllowAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_WAF_CUSTOM, &configv1.Rule_Allow{Allow: a}
	case *configv1.ChallengeAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_WAF_CUSTOM, &configv1.Rule_Challenge{Challenge: a}
	case *configv1.RedirectAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_REDIRECT, &configv1.Rule_Redirect{Redirect: a}
	case *configv1.RewriteAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_REQUEST_TRANSFORM, &configv1.Rule_Rewrite{Rewrite: a}
	case *configv1.HeaderAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_REQUEST_TRANSFORM, &configv1.Rule_RequestHeader{RequestHeader: a}
	case *configv1.ConfigAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_CONFIG, &configv1.Rule_Config{Config: a}
	case *configv1.RateLimitAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_RATELIMIT, &configv1.Rule_RateLimit{RateLimit: a}
	case *configv1.OriginAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_ORIGIN, &configv1.Rule_Origin{Origin: a}
	case *configv1.CompressionAction:
		r.Phase, r.Action = configv1.RulePhase_RULE_PHASE_COMPRESSION, &configv1.Rule_Compression{Compression: a}
	default:
		panic(fmt.Sprintf("no action: %T", action))
	}
	return r
}

// WhenAnswered is a rule that changes the header of answers.
func WhenAnswered(condition Node, change *configv1.HeaderAction) *configv1.Rule {
	return &configv1.Rule{
		Phase: configv1.RulePhase_RULE_PHASE_RESPONSE_TRANSFORM, Condition: Encode(condition),
		Action: &configv1.Rule_ResponseHeader{ResponseHeader: change},
	}
}

// In puts a rule into another phase.
func In(phase configv1.RulePhase, r *configv1.Rule) *configv1.Rule {
	r.Phase = phase
	return r
}

// Site is the rules of a site.
func Site(rules ...*configv1.Rule) *configv1.SiteRules {
	return &configv1.SiteRules{Rules: numbered("s", rules)}
}

// Platform is the rules of every site.
func Platform(rules ...*configv1.Rule) *configv1.PlatformRules {
	return &configv1.PlatformRules{Rules: numbered("p", rules)}
}

func numbered(prefix string, rules []*configv1.Rule) []*configv1.Rule {
	list := make([]*configv1.Rule, len(rules))
	for i, r := range rules {
		// One rule may stand in several lists.
		list[i] = proto.CloneOf(r)
		if r.GetId() == "" {
			list[i].Id = fmt.Sprint(prefix, i+1)
		}
	}
	return list
}

// Text is a value that stands there.
func Text(text string) *configv1.RuleValue {
	return &configv1.RuleValue{Value: &configv1.RuleValue_Text{Text: text}}
}

// Computed is a value that is computed for each request.
func Computed(n Node) *configv1.RuleValue {
	return &configv1.RuleValue{Value: &configv1.RuleValue_Expression{Expression: Encode(n)}}
}
