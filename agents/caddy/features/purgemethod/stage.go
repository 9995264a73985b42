package purgemethod

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

const (
	maxURLBytes   = 2048
	perSecond     = 20
	networkRateID = "purge"
	siteRateID    = "purge accepted"
)

var (
	ofNetwork = exchange.NewRateRule(true, networkRateID, exchange.RateByAddress, "", perSecond, 1)
	ofSite    = exchange.NewRateRule(true, siteRateID, exchange.RateByHost, "", perSecond, 1)
)

func takes(x *exchange.Exchange) *settings {
	if x.In.Method != Method || x.Plan == nil {
		return nil
	}
	return part.Of(x.Plan)
}

// Mark keeps PURGE requests out of the statistics of visitors.
func Mark(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if takes(x) != nil {
			*exchange.Uncounted.Of(x) = true
		}
		return nil
	}
}

// Stage answers PURGE requests to sites that take them.
func Stage(c *core.Core) exchange.Stage {
	purger := component.Of(c)
	limits := core.Find[exchange.RateLimits](c)
	return func(x *exchange.Exchange) *exchange.Answer {
		s := takes(x)
		if s == nil {
			return nil
		}
		// Nothing of it is read.
		if x.Body.Exists() && x.In.Major == 1 {
			x.CloseAfter()
		}
		return purger.answer(x, s, limits)
	}
}

func (p *Purger) answer(x *exchange.Exchange, s *settings, limits exchange.RateLimits) *exchange.Answer {
	within := func(due exchange.RateDue) bool {
		return limits == nil || limits.Admit(x.Plan, []exchange.RateDue{due}) < 0
	}
	if !within(ofNetwork.DueOfAddress(x.In.Client)) {
		return limited(x, 1)
	}
	secret := p.secret.Load()
	if secret == nil {
		return refuse(x, http.StatusServiceUnavailable, pages.PurgeUnavailable)
	}
	if !s.isKey(secret.GetSecret(), x.In.Header[keyHeader]) {
		return refuse(x, http.StatusForbidden, pages.PurgeKeyInvalid)
	}
	asked, ok := urlOf(&x.In)
	if !ok {
		return refuse(x, http.StatusBadRequest, pages.PurgeURLInvalid)
	}
	if !within(ofSite.DueOfText("")) {
		return limited(x, 1)
	}
	a := p.desk.submit(x.Context(), s.siteID, asked)
	switch {
	case a.GetTaskId() != "":
		return accept(x, a.GetTaskId())
	case a.GetRefusal() == pages.PurgeURLInvalid:
		return refuse(x, http.StatusBadRequest, pages.PurgeURLInvalid)
	case a.GetRefusal() == pages.PurgeRateLimited:
		return limited(x, max(a.GetRetryAfterSeconds(), 1))
	}
	return refuse(x, http.StatusServiceUnavailable, pages.PurgeUnavailable)
}

// urlOf is the URL that a request is for.
func urlOf(in *exchange.Inbound) (text string, ok bool) {
	if in.Target.Ambiguous || in.Host == "" || !strings.HasPrefix(in.Target.Raw, "/") {
		return "", false
	}
	host := in.Host
	if strings.IndexByte(host, ':') >= 0 {
		host = "[" + host + "]"
	}
	text = in.Scheme + "://" + host + in.Target.Raw
	if len(text) > maxURLBytes {
		return "", false
	}
	_, err := url.Parse(text)
	return text, err == nil
}

var jsonType = []string{"application/json"}

func refuse(x *exchange.Exchange, status int, code string) *exchange.Answer {
	a := pages.Respond(x, status, code)
	a.Header["Content-Type"] = jsonType
	return a
}

func limited(x *exchange.Exchange, seconds uint32) *exchange.Answer {
	a := refuse(x, http.StatusTooManyRequests, pages.PurgeRateLimited)
	a.Header["Retry-After"] = []string{strconv.FormatUint(uint64(seconds), 10)}
	return a
}

func accept(x *exchange.Exchange, taskID string) *exchange.Answer {
	a := x.Respond(http.StatusAccepted)
	a.Header["Content-Type"] = jsonType
	a.Header["Cache-Control"] = []string{"no-store"}
	body, _ := json.Marshal(struct {
		TaskID string `json:"task_id"`
	}{taskID})
	x.SetBytes(a, append(x.Page(), append(body, '\n')...))
	return a
}
