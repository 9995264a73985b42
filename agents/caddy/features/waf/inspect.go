package waf

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corazawaf/coraza/v3/collection"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/corazawaf/coraza/v3/types"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/waf/bodies"
)

// verdict is what the rules say of a request, immutable.
type verdict struct {
	rules []int
	score int
	// Where they matched, of some of them, and at how many places in all.
	matches []exchange.WAFMatch
	seen    int
	// The body has a content coding, and what it was packed of is not known.
	unread bool
}

// errTime says that the patterns of an inspection took longer than they may.
var errTime = errors.New("the inspection of a request takes too long")

// fill gives a transaction the settings of the site.
func (s *settings) fill(vars plugintypes.TransactionVariables, contentType string) {
	to := vars.TX()
	to.Set("blocking_paranoia_level", s.paranoia)
	to.Set("detection_paranoia_level", s.paranoia)
	to.Set("inbound_anomaly_score_threshold", s.limit)
	to.Set("allowed_methods", s.methods)
	to.Set("allowed_request_content_type", s.types)
	to.Set("allowed_request_content_type_charset", s.charsetsOf(contentType))
}

// restrictedHeaders are the rule set's own.
const restrictedHeaders = "/content-encoding/ /proxy/ /lock-token/ /content-range/ /if/ /x-http-method-override/ /x-http-method/ /x-method-override/" +
	" /x-middleware-subrequest/ /expect/"

var contentRange = regexp.MustCompile(`^bytes \d+-\d+/(\d+|\*)$`)

// restricted are fields of a header that no request may have. Editors say in one which method they mean, and have to mean
// one that the site takes; uploads say in one which piece of a file they are, and have to be a file. A content coding is
// nothing to worry about where the content is known.
func (s *settings) restricted(header http.Header, unpacked bool) string {
	list := restrictedHeaders
	if unpacked {
		list = strings.Replace(list, "/content-encoding/ ", "", 1)
	}
	if meant := header["X-Http-Method-Override"]; len(meant) == 1 && slices.Contains(strings.Fields(s.methods[0]), meant[0]) {
		list = strings.Replace(list, "/x-http-method-override/ ", "", 1)
	}
	if piece := header["Content-Range"]; len(piece) == 1 && contentRange.MatchString(piece[0]) {
		if contentType := header.Get("Content-Type"); contentType == "application/octet-stream" || bodies.KindOf(contentType) == bodies.Multipart {
			list = strings.Replace(list, "/content-range/ ", "", 1)
		}
	}
	return list
}

// readHead gives a transaction what the origin gets of the head: the target that rules may have rewritten, and the header
// as the client sent it.
func readHead(x *exchange.Exchange, target *exchange.Target, tx types.Transaction, vars plugintypes.TransactionVariables) {
	tx.ProcessConnection(x.In.Client.String(), 0, "", int(x.In.Port))
	// The engine forgets what follows a "#", and origins do not.
	tx.ProcessURI(strings.ReplaceAll(target.Raw, "#", "%23"), x.Method(), x.In.Proto)
	bodies.Set(vars.RequestURIRaw(), target.Raw)
	// Those without a name have one address.
	if unnamed := vars.ArgsGet().Get(""); len(unnamed) > 1 {
		vars.ArgsGet().Remove("")
		for _, v := range unnamed {
			vars.ArgsGet().Add(bodies.Apart(""), v)
		}
	}
	readArguments(vars.ArgsGet())
	if strings.Count(target.Query, "&") >= bodies.MaxArguments {
		// The engine takes as many and forgets the others.
		taken := 0
		rest := bodies.Joined(vars.ArgsGet().Add)
		bodies.ReadPairs(target.Query, &bodies.Arguments{Add: func(name, value string) {
			if taken++; taken > bodies.MaxArguments {
				rest.Put(name, value)
			}
		}, Endless: true})
		rest.End()
	}
	tx.SetServerName(x.In.Host)
	tx.AddRequestHeader("Host", x.In.HostRaw)
	cookies := &bodies.Arguments{Add: vars.RequestCookies().Add}
	for name, values := range x.In.Header {
		for _, v := range values {
			if name != "Cookie" {
				tx.AddRequestHeader(bodies.Apart(name), v)
			} else if rest := readCookies(v, cookies); rest != "" {
				vars.RequestHeaders().Add(bodies.Apart(name), rest)
			}
		}
	}
	cookies.End()
}

// readArguments reads what of a query may be markup or a document of GraphQL, as the same in a form is read.
func readArguments(query collection.Map) {
	var names []string
	for _, m := range query.FindAll() {
		if name := m.Key(); (name == "query" || strings.IndexByte(m.Value(), '<') >= 0) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	each := &bodies.Arguments{Add: query.Add, Endless: true}
	for _, name := range names {
		sent := query.Get(name)
		query.Remove(name)
		for _, v := range sent {
			each.Put(name, v)
		}
	}
}

// readTrailer gives a transaction the fields that came after the body, which tell nothing of how it is read.
func readTrailer(trailer http.Header, vars plugintypes.TransactionVariables) {
	for name, values := range trailer {
		for _, v := range values {
			vars.RequestHeaders().Add(bodies.Apart(name), v)
		}
	}
}

// verdictOf reads what matched, and notes where.
func verdictOf(tx types.Transaction, vars plugintypes.TransactionVariables, values bool, where *found) (v verdict) {
	for _, m := range tx.MatchedRules() {
		id := m.Rule().ID()
		if logged, ok := m.(interface{ Log() bool }); ok && !logged.Log() || id < firstRule || excludable(uint32(min(id, lastRule))) != nil {
			continue
		}
		if !slices.Contains(v.rules, id) {
			v.rules = append(v.rules, id)
		}
		where.note(m, vars.RequestHeaders(), values)
	}
	if score := vars.TX().Get("blocking_inbound_anomaly_score"); len(score) > 0 {
		v.score, _ = strconv.Atoi(score[0])
	}
	return v
}
