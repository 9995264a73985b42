package acme

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// asked is what a certificate authority is answered, "" where the node does not answer itself.
func asked(c *core.Core, host, token string) string {
	x := new(exchange.Exchange)
	r := httptest.NewRequest("GET", "/.well-known/acme-challenge/"+token, nil)
	r.Host = host
	x.Begin(httptest.NewRecorder(), r)
	if a := Stage(c)(x); a != nil {
		if kind := a.Header["Content-Type"]; len(kind) != 1 || kind[0] != "text/plain" {
			return fmt.Sprintf("of type %q", kind)
		}
		return string(a.Bytes)
	}
	return ""
}

func TestTokensOfTheAgent(t *testing.T) {
	now := time.Now()
	c := core.New(core.Options{StateDir: t.TempDir(), Now: func() time.Time { return now }})
	token := func(host, name string) *nodev1.AcmeToken {
		return &nodev1.AcmeToken{Host: host, Token: name, KeyAuthorization: name + ".print", ExpiresAtMs: now.Add(time.Minute).UnixMilli()}
	}
	set := func(r *edgev1.SetAcmeTokensRequest) error {
		_, err := setTokens(context.Background(), c, r)
		return err
	}
	type answers map[string]string
	want := func(when string, expected answers) {
		t.Helper()
		for host, authorization := range expected {
			if got := asked(c, host, "one"); got != authorization {
				t.Errorf("%s: %s is answered %q", when, host, got)
			}
		}
	}
	if err := set(&edgev1.SetAcmeTokensRequest{Complete: true, Upserts: []*nodev1.AcmeToken{token("a.com", "one"), token("b.com", "one")}}); err != nil {
		t.Fatal(err)
	}
	want("all", answers{"a.com": "one.print", "A.com:80": "one.print", "b.com": "one.print", "c.com": ""})
	if err := set(&edgev1.SetAcmeTokensRequest{Upserts: []*nodev1.AcmeToken{token("c.com", "one")}, Removed: []*nodev1.AcmeToken{{Host: "a.com", Token: "one"}}}); err != nil {
		t.Fatal(err)
	}
	want("a change", answers{"a.com": "", "b.com": "one.print", "c.com": "one.print"})
	for name, bad := range map[string]*nodev1.AcmeToken{
		"no host": token("", "one"), "upper case": token("A.com", "one"), "a path": token("a.com", "one/two"), "no token": token("a.com", ""),
		"no authorization": {Host: "a.com", Token: "one"},
	} {
		if set(&edgev1.SetAcmeTokensRequest{Complete: true, Upserts: []*nodev1.AcmeToken{bad}}) == nil {
			t.Errorf("%s was taken", name)
		}
	}
	many := &edgev1.SetAcmeTokensRequest{}
	for i := range maxTokens {
		many.Upserts = append(many.Upserts, token(fmt.Sprintf("h%d.com", i), "one"))
	}
	if set(many) == nil {
		t.Error("too many were taken")
	}
	want("refused changes", answers{"b.com": "one.print", "c.com": "one.print", "h1.com": ""})
	if err := set(&edgev1.SetAcmeTokensRequest{Complete: true, Upserts: []*nodev1.AcmeToken{token("c.com", "one")}}); err != nil {
		t.Fatal(err)
	}
	want("all anew", answers{"b.com": "", "c.com": "one.print"})
	now = now.Add(time.Minute)
	want("a minute later", answers{"c.com": ""})
}
