package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"edge.svc/caddy/expr"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// compiler makes one rule.
type compiler struct {
	platform bool
	phase    phase
	id       string
	// What of the target the condition reads: an action that exempts asks for its plain spelling.
	spelled spelling
}

var (
	errResponse = errors.New("the rule reads a response, which its phase does not have")
	errUnknown  = errors.New("the action needs a capability that this node does not have")
	errNothing  = errors.New("the action does nothing")
	errValue    = errors.New("the action has a value that is not allowed there")
	errNoValue  = errors.New("the action has no value")
)

func (c *compiler) condition(encoded []byte) (*expr.Condition, error) {
	tree, err := expr.Decode(encoded)
	if err != nil {
		return nil, err
	}
	condition, err := expr.CompileCondition(tree)
	if err != nil {
		return nil, err
	}
	if condition.Response() && !ofResponse(c.phase) {
		return nil, errResponse
	}
	return condition, nil
}

// action makes what the rule does, where its phase has such actions.
func (c *compiler) action(m *configv1.Rule) (action, error) {
	switch a := m.GetAction().(type) {
	case *configv1.Rule_Rewrite:
		return c.in(requestTransform)(c.rewrite(a.Rewrite))
	case *configv1.Rule_RequestHeader:
		return c.in(requestTransform, origin)(c.requestHeader(a.RequestHeader))
	case *configv1.Rule_Redirect:
		return c.in(redirect)(c.redirect(a.Redirect))
	case *configv1.Rule_Config:
		return c.in(config, cache)(c.config(a.Config))
	case *configv1.Rule_Block:
		return c.in(wafCustom)(c.block(a.Block))
	case *configv1.Rule_Log:
		return c.in(wafCustom)(logMatch, nil)
	case *configv1.Rule_Allow:
		return c.in(wafCustom)(c.allow(), nil)
	case *configv1.Rule_Challenge:
		return c.in(wafCustom)(c.challenge(a.Challenge))
	case *configv1.Rule_RateLimit:
		return c.in(rateLimit)(c.rateLimit(a.RateLimit))
	case *configv1.Rule_Origin:
		return c.in(origin)(c.origin(a.Origin))
	case *configv1.Rule_ResponseHeader:
		return c.in(responseTransform)(c.responseHeader(a.ResponseHeader))
	case *configv1.Rule_Compression:
		return c.in(compression)(c.compression(a.Compression))
	}
	return nil, errUnknown
}

// in refuses an action in any phase but these.
func (c *compiler) in(allowed ...phase) func(action, error) (action, error) {
	return func(do action, err error) (action, error) {
		if err == nil && !slices.Contains(allowed, c.phase) {
			err = fmt.Errorf("the action is not allowed in the phase %s", phaseNames[c.phase])
		}
		return do, err
	}
}

func oneOf(field string, v uint32, allowed ...uint32) error {
	if slices.Contains(allowed, v) {
		return nil
	}
	return fmt.Errorf("%s is %d; it must be one of %d", field, v, allowed)
}

// 4,096 characters.
const maxStaticHeader = 4 * 4096

// value is a text that stands there, or one that is computed.
type value struct {
	use  expr.Use
	text string
	// The text is too long to be sent.
	unusable bool
	computed *expr.Value
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// value makes a value for its use; one that stands there must be usable.
func (c *compiler) value(m *configv1.RuleValue, use expr.Use) (value, error) {
	switch v := m.GetValue().(type) {
	case *configv1.RuleValue_Text:
		usable := use.Accepts(v.Text)
		// A header's value is bounded by its characters where it is written, and by its bytes here.
		if !usable && (use != expr.ForHeader || len(v.Text) > maxStaticHeader || strings.ContainsFunc(v.Text, isControl)) {
			return value{}, errValue
		}
		text := v.Text
		if use == expr.ForRewrite {
			// What is written is a decoded path.
			text, _ = expr.EncodedTarget(use, text)
		}
		return value{use: use, text: text, unusable: !usable}, nil
	case *configv1.RuleValue_Expression:
		tree, err := expr.Decode(v.Expression)
		if err != nil {
			return value{}, err
		}
		computed, err := expr.CompileValue(tree)
		if err != nil {
			return value{}, err
		}
		if computed.Response() && !ofResponse(c.phase) {
			return value{}, errResponse
		}
		return value{use: use, computed: computed}, nil
	}
	return value{}, errNoValue
}

// of is the value for a request; why says why there is none.
func (v *value) of(q *request) (result, why string) {
	switch {
	case v.unusable:
		return "", expr.UnusableResult.String()
	case v.computed == nil:
		return v.text, ""
	}
	if v.use == expr.ForRedirect || v.use == expr.ForRewrite {
		target, failure := v.computed.TargetFor(v.use, q)
		return target, q.why(failure)
	}
	result, failure := v.computed.BytesFor(v.use, q)
	return result, q.why(failure)
}
