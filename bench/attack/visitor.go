package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

const (
	visitorAgent = "Mozilla/5.0 (X11; Linux x86_64) visitor of the attack kit"
	// Redirects and challenges until a visit is given up.
	maxHops    = 10
	verifyPath = "/.svc/challenge/verify"
)

// visitor is a person behind a browser: it keeps cookies and solves what it is asked, by the means of the pages.
type visitor struct {
	line   line
	index  int
	cookie string
}

var (
	tokenOnPage = regexp.MustCompile(`data-t="([^"]*)"`)
	bitsOnPage  = regexp.MustCompile(`data-d="(\d+)"`)
	tokenOfForm = regexp.MustCompile(`name="t" value="([^"]*)"`)
)

var errGivenUp = errors.New("challenged again and again")

// visit opens the page and returns how often it was challenged on the way, by the names of the challenges.
func (v *visitor) visit(ctx context.Context, path string) (challenges []string, err error) {
	for range maxHops {
		a, err := v.ask(ctx, http.MethodGet, path, "")
		if err != nil {
			return challenges, err
		}
		switch {
		case a.challenge == "" && a.status < 400:
			return challenges, nil
		case a.challenge == "":
			return challenges, fmt.Errorf("answered %s", a.outcome())
		}
		challenges = append(challenges, a.challenge)
		if a.status == http.StatusFound {
			continue
		}
		if err := v.solve(ctx, a, path); err != nil {
			return challenges, err
		}
	}
	return challenges, errGivenUp
}

func (v *visitor) ask(ctx context.Context, method, path, form string) (answer, error) {
	a, err := v.line.send(ctx, message{
		method: method, path: path, agent: visitorAgent, cookie: v.cookie, form: form, client: visitorAddress(v.index), wantBody: true,
	})
	if a.cookie != "" {
		v.cookie = a.cookie
	}
	return a, err
}

// solve answers a challenge page. Instead of a captcha it takes the proof of work the page offers.
func (v *visitor) solve(ctx context.Context, page answer, back string) error {
	if page.challenge == "captcha" {
		token := find(tokenOfForm, page.body)
		if token == "" {
			return errors.New("the captcha page has no form")
		}
		form := url.Values{"t": {token}, "r": {back}, "alt": {"pow"}}
		next, err := v.ask(ctx, http.MethodPost, verifyPath, form.Encode())
		if err != nil {
			return err
		}
		page = next
	}
	token, difficulty := find(tokenOnPage, page.body), find(bitsOnPage, page.body)
	if token == "" {
		return fmt.Errorf("answered %s without a challenge on the page", page.outcome())
	}
	var result string
	if page.challenge == "js" {
		sum := sha256.Sum256([]byte(token))
		result = hex.EncodeToString(sum[:])
	} else {
		n, _ := strconv.Atoi(difficulty)
		result = work(ctx, token, n)
	}
	form := url.Values{"t": {token}, "a": {result}, "r": {back}}
	a, err := v.ask(ctx, http.MethodPost, verifyPath, form.Encode())
	if err == nil && a.status != http.StatusSeeOther {
		err = fmt.Errorf("the answer got %s", a.outcome())
	}
	return err
}

func find(pattern *regexp.Regexp, text string) string {
	if match := pattern.FindStringSubmatch(text); match != nil {
		return html.UnescapeString(match[1])
	}
	return ""
}

// run visits until the context ends.
func (v *visitor) run(ctx context.Context, o *options, tally *tally) {
	// Not all at the same moment.
	if !pause(ctx, o.every*time.Duration(v.index)/time.Duration(max(o.visitors, 1))) {
		return
	}
	for ctx.Err() == nil {
		start := time.Now()
		challenges, err := v.visit(ctx, o.visitorPath)
		if ctx.Err() != nil {
			return
		}
		tally.visit(time.Since(start), challenges, err)
		if !pause(ctx, o.every-time.Since(start)) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
