package acme

import (
	"net/http"
	"strings"
	"sync/atomic"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

const prefix = "/.well-known/acme-challenge/"

// mostPerSecond is how many questions a site may get in a second that are spared challenges, because nobody asks more.
const mostPerSecond = 10

// Stage answers for tokens that are known, and marks other questions as ones of a certificate authority: GET or HEAD of a
// token in its one spelling, without query and body.
func Stage(c *core.Core) exchange.Stage {
	tokens := Tokens.Of(c)
	return func(x *exchange.Exchange) *exchange.Answer {
		token, ok := strings.CutPrefix(x.In.Target.Canonical, prefix)
		if !ok || !isToken(token) || !x.In.Target.Exact() || strings.Contains(x.In.Target.Raw, "?") || x.Body.Exists() ||
			x.In.Method != http.MethodGet && x.In.Method != http.MethodHead {
			return nil
		}
		*exchange.Validation.Of(x) = true
		host, kind := core.NormalizeHost(x.In.HostRaw)
		if kind == core.HostInvalid {
			return nil
		}
		authorization, known := tokens.answer(host, token)
		if !known {
			return nil
		}
		a := x.Respond(http.StatusOK)
		a.Header["Content-Type"] = []string{"text/plain"}
		a.Header["Cache-Control"] = []string{"no-store"}
		x.SetBytes(a, append(x.Page(), authorization...))
		return a
	}
}

func isToken(token string) bool {
	if token == "" {
		return false
	}
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// pace counts the questions of a site within a second: the second in the upper bits, the count in the lower 16.
type pace struct{ state atomic.Uint64 }

var paces = exchange.NewLive[pace]("acme")

func (p *pace) take(second uint64) bool {
	for {
		old := p.state.Load()
		next := second<<16 + 1
		if old>>16 == second {
			if old&0xffff >= mostPerSecond {
				return false
			}
			next = old + 1
		}
		if p.state.CompareAndSwap(old, next) {
			return true
		}
	}
}

// Limit makes an ordinary request of a question that is one too many for its site.
func Limit(c *core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if validation, _ := exchange.Validation.Known(x); !validation {
			return nil
		}
		at := paces.Of(x.Plan)
		if at == nil {
			at = paces.Put(x.Plan, new(pace))
		}
		if !at.take(uint64(c.Now().Unix())) {
			*exchange.Validation.Of(x) = false
		}
		return nil
	}
}
