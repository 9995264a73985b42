// Package greet is a feature that exists for a test only: it greets visitors of hosts that ask for it. It shows all that a
// feature brings, and that nothing else has to change for it but an import and its line in the order.
package greet

import (
	"errors"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

var (
	// words is what the cluster's entry of the kind "greeting" says.
	words = exchange.NewSetting("greeting", "")
	// Greeted says that the visitor of an exchange is greeted; other features may ask for it.
	Greeted = exchange.NewFact[bool]()
)

func init() {
	core.SettingKind("greeting", words, func(m *wrapperspb.StringValue) (string, error) {
		if m.GetValue() == "" {
			return "", errors.New("a greeting needs text")
		}
		return m.GetValue(), nil
	})
	core.ConfigureKind("greeting", core.KindOptions{Features: []string{"greeting-v1"}, MaxBody: 100})
}

// Stage answers those who ask for the words alone, and notes whom to greet.
func Stage(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		text := words.Of(x.Tables)
		if text == "" {
			return nil
		}
		*Greeted.Of(x) = true
		if x.In.Target.Canonical != "/greeting" {
			return nil
		}
		a := x.Respond(200)
		x.SetBytes(a, append(x.Page(), text...))
		return a
	}
}

// Response greets in the header of every answer.
func Response(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if greeted, _ := Greeted.Known(x); greeted {
			a.Header["X-Greeting"] = []string{words.Of(x.Tables)}
		}
	}
}
