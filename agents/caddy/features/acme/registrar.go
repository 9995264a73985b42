package acme

import (
	"errors"
	"sync"
	"time"

	"edge.svc/caddy/core"
)

// Tokens is the registrar of the process: what certificate authorities are answered.
var Tokens = core.NewComponent("ACME tokens", func(c *core.Core) *Registrar {
	return &Registrar{now: c.Now, known: map[question]answer{}}
})

// Registrar knows the tokens for which the node answers itself.
type Registrar struct {
	now   func() time.Time
	mu    sync.RWMutex
	known map[question]answer
}

type question struct{ host, token string }

type answer struct {
	authorization string
	until         time.Time
}

// Token has a question of a certificate authority answered.
type Token struct {
	Host, Token, Authorization string
	// Until when it is answered.
	Until time.Time
}

const (
	maxTokens             = 10_000
	maxTokenBytes         = 256
	maxAuthorizationBytes = 512
)

var (
	errTooMany = errors.New("there are too many ACME tokens at a time")
	errToken   = errors.New("an ACME token is malformed, or has no host or no key authorization")
)

// Set has tokens answered, and others no more; with complete nothing else is answered any more. Nothing is changed where
// it fails.
func (r *Registrar) Set(complete bool, upserts, removed []Token) error {
	for _, t := range upserts {
		if host, kind := core.NormalizeHost(t.Host); kind == core.HostInvalid || host != t.Host || !isToken(t.Token) ||
			len(t.Token) > maxTokenBytes || t.Authorization == "" || len(t.Authorization) > maxAuthorizationBytes {
			return errToken
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	next := map[question]answer{}
	if !complete {
		for q, a := range r.known {
			if now.Before(a.until) {
				next[q] = a
			}
		}
	}
	for _, t := range removed {
		delete(next, question{t.Host, t.Token})
	}
	for _, t := range upserts {
		next[question{t.Host, t.Token}] = answer{t.Authorization, t.Until}
	}
	if len(next) > maxTokens {
		return errTooMany
	}
	r.known = next
	return nil
}

func (r *Registrar) answer(host, token string) (authorization string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.known[question{host, token}]
	if !ok || !r.now().Before(a.until) {
		return "", false
	}
	return a.authorization, true
}
