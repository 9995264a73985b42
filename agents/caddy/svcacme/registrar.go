// Package svcacme answers certificate authorities that ask who controls a host (RFC 8555, section 8.3), and lets those
// questions that are an origin's own business pass.
package svcacme

import (
	"errors"
	"sync"

	"edge.svc/caddy/svccore"
)

// Tokens is the registrar of the process: what certificate authorities are answered.
var Tokens = svccore.NewComponent("ACME tokens", func(*svccore.Core) *Registrar { return &Registrar{known: map[question]string{}} })

// Registrar knows the tokens for which the node answers itself.
type Registrar struct {
	mu    sync.RWMutex
	known map[question]string
}

type question struct{ host, token string }

const maxTokens = 10_000

var errTooMany = errors.New("there are too many tokens at a time")

// Put has a token of a host answered with a key authorization, until Remove.
func (r *Registrar) Put(host, token, authorization string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxTokens {
		return errTooMany
	}
	r.known[question{host, token}] = authorization
	return nil
}

// Remove forgets a token.
func (r *Registrar) Remove(host, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, question{host, token})
}

func (r *Registrar) answer(host, token string) (authorization string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	authorization, ok = r.known[question{host, token}]
	return authorization, ok
}
