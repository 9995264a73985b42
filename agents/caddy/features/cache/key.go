package cache

import (
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/store"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// keySettings say what of a request distinguishes stored responses.
type keySettings struct {
	query      configv1.CacheQuery
	names      map[string]bool
	prefixes   []string
	sorted     bool
	headers    []string
	cookies    []string
	device     bool
	ignoreHost bool
}

const (
	maxParameters = 32
	maxKeyFields  = 8
)

var errKey = errors.New("the cache key has a value that is not allowed")

func compileKey(m *configv1.CacheKey) (k keySettings, err error) {
	if len(m.GetQueryParams()) > maxParameters || len(m.GetHeaders()) > maxKeyFields || len(m.GetCookies()) > maxKeyFields ||
		m.GetQuery() > configv1.CacheQuery_CACHE_QUERY_EXCLUDE {
		return k, errKey
	}
	k = keySettings{query: m.GetQuery(), names: map[string]bool{}, sorted: m.GetSortQuery(), device: m.GetDeviceType(), ignoreHost: m.GetIgnoreHost()}
	for _, name := range m.GetQueryParams() {
		if prefix, found := strings.CutSuffix(name, "*"); found {
			k.prefixes = append(k.prefixes, prefix)
		} else {
			k.names[name] = true
		}
	}
	for _, name := range m.GetHeaders() {
		if name = textproto.CanonicalMIMEHeaderKey(name); name == "" || name == "Cookie" || name == "Host" {
			return k, errKey
		}
		k.headers = append(k.headers, name)
	}
	for _, name := range m.GetCookies() {
		if name == "" || strings.ContainsAny(name, "=; ,") {
			return k, errKey
		}
		k.cookies = append(k.cookies, name)
	}
	return k, nil
}

// requestKey is the key of one request.
type requestKey struct {
	// text is the whole, url the part up to the separator.
	text, url string
	// What purges compare.
	host, path, query string
	settings          *keySettings
	hash              store.Key
}

// of makes the key of a request. ok is false where a cookie of it is ambiguous.
func (k *keySettings) of(x *exchange.Exchange) (key requestKey, ok bool) {
	in := &x.In
	key.host, key.path, key.query, key.settings = in.Host, pathOf(&in.Target), k.QueryOf(in.Target.Query), k
	b := make([]byte, 0, 256)
	b = k.appendURL(b, x, in.Scheme, key.path, key.query)
	n := len(b)
	b = append(b, store.Separator...)
	for _, name := range k.headers {
		if lines := in.Header[name]; lines != nil {
			b = appendPart(b, 'h', strings.Join(lines, ","))
		} else {
			b = append(b, 'n')
		}
	}
	for _, name := range k.cookies {
		value, found, clear := cookieOf(in.Header["Cookie"], name)
		if !clear {
			return key, false
		}
		if found {
			b = appendPart(b, 'c', value)
		} else {
			b = append(b, 'n')
		}
	}
	if k.device && mobile(in.Header["User-Agent"]) {
		b = append(b, 'm')
	}
	b = appendChanged(appendClaims(b, in.Header), x)
	key.text = string(b)
	key.url = key.text[:n]
	key.hash = store.KeyOf(key.text, "")
	return key, true
}

// appendURL appends the part of a key that is of the URL. Each part has its length, so that none can imitate another.
func (k *keySettings) appendURL(b []byte, x *exchange.Exchange, scheme, path, query string) []byte {
	b = append(append(b, x.Plan.SiteID...), '|')
	b = append(append(b, scheme...), '|')
	// Anybody can name a host that is of no site.
	if unknown, _ := exchange.UnknownHost.Known(x); !k.ignoreHost || unknown {
		b = append(b, x.In.Host...)
	}
	b = append(b, '|')
	return appendPart(appendPart(b, 'p', path), 'q', query)
}

func appendPart(b []byte, name byte, text string) []byte {
	b = append(b, name)
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(b, ':')
	for i := range len(text) {
		// The separator stands nowhere else.
		if c := text[i]; c == 0 {
			b = append(b, 1)
		} else {
			b = append(b, c)
		}
	}
	return b
}

// pathOf is the path as the client sent it.
func pathOf(t *exchange.Target) string {
	raw, _, _ := strings.Cut(t.Raw, "?")
	return raw
}

// QueryOf is what of a query is in the key.
func (k *keySettings) QueryOf(query string) string {
	if k.query == configv1.CacheQuery_CACHE_QUERY_IGNORE || query == "" {
		return ""
	}
	all := k.query <= configv1.CacheQuery_CACHE_QUERY_ALL
	if all && !k.sorted {
		return query
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if all || k.matches(pair) == (k.query == configv1.CacheQuery_CACHE_QUERY_INCLUDE) {
			kept = append(kept, pair)
		}
	}
	if k.sorted {
		slices.SortStableFunc(kept, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	}
	return strings.Join(kept, "&")
}

func nameOf(pair string) string { name, _, _ := strings.Cut(pair, "="); return name }

// matches reports whether a parameter is listed, by its name as it stands or decoded. Some origins split at ";" too, so that a
// parameter with one may hide another: it is in the key, whatever is listed.
func (k *keySettings) matches(pair string) bool {
	if strings.IndexByte(pair, ';') >= 0 {
		return k.query == configv1.CacheQuery_CACHE_QUERY_INCLUDE
	}
	name := nameOf(pair)
	if k.lists(name) {
		return true
	}
	decoded, err := url.QueryUnescape(name)
	return err == nil && decoded != name && k.lists(decoded)
}

func (k *keySettings) lists(name string) bool {
	return k.names[name] || slices.ContainsFunc(k.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// cookieOf is the value of a cookie. clear is false where an origin could read another one: the name comes twice, in another
// case, encoded, without "=", or after a comma.
func cookieOf(lines []string, name string) (value string, found, clear bool) {
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			for i, piece := range strings.Split(pair, ",") {
				its, _, has := strings.Cut(strings.Trim(piece, " \t"), "=")
				its = strings.Trim(its, " \t")
				decoded, err := url.PathUnescape(its)
				if !strings.EqualFold(its, name) && (err != nil || !strings.EqualFold(decoded, name)) {
					continue
				}
				if its != name || !has || i > 0 || found {
					return "", false, false
				}
				_, value, _ = strings.Cut(pair, "=")
				value, found = strings.Trim(value, " \t"), true
			}
		}
	}
	return value, found, true
}

// appendClaims appends the fields in which programs behind origins believe what a proxy says of a request: nobody may change
// with them what others get. Those that name another method or URL bypass, and others the edge replaces.
func appendClaims(b []byte, h http.Header) []byte {
	var names []string
	for name := range h {
		if claims(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendPart(appendPart(b, 'x', name), 'v', strings.Join(h[name], ","))
	}
	return b
}

func claims(name string) bool {
	switch name {
	case "Base-Url", "Cf-Connecting-Ip", "Client-Ip", "Cloudfront-Forwarded-Proto", "Fastly-Client-Ip", "Fastly-Ssl", "Front-End-Https",
		"Proxy-Host", "Proxy-Url", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Host", "X-Http-Host-Override",
		"X-Original-Host", "X-Original-Uri", "X-Originating-Ip", "X-Proxyuser-Ip", "X-Remote-Addr", "X-Remote-Ip", "X-Request-Uri",
		"X-Scheme", "X-Url-Scheme", "X-Wap-Profile":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") && !edgeForwards(name)
}

// edgeForwards names those that the edge itself sets.
func edgeForwards(name string) bool {
	switch name {
	case "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port":
		return true
	}
	return false
}

var mobileWords = []string{"Mobi", "Android", "iPhone", "iPad", "iPod", "Windows Phone", "BlackBerry", "Opera Mini", "webOS"}

func mobile(agents []string) bool {
	for _, agent := range agents {
		if slices.ContainsFunc(mobileWords, func(word string) bool { return strings.Contains(agent, word) }) {
			return true
		}
	}
	return false
}

// appendChanged appends what rules changed of the request to the origin.
func appendChanged(b []byte, x *exchange.Exchange) []byte {
	o := &x.Out
	if o.Identity {
		b = append(b, 'i')
	}
	if o.Target != nil {
		b = appendPart(b, 't', o.Target.Raw)
	}
	if o.Host != "" || o.Group != "" || o.HostHeader != "" || o.SNI != "" || o.Port != 0 {
		for _, text := range []string{o.Host, o.Group, o.HostHeader, o.SNI, strconv.Itoa(int(o.Port))} {
			b = appendPart(b, 'o', text)
		}
	}
	for _, edit := range o.Edits {
		if ofCondition(edit.Name) {
			continue
		}
		name := byte('e')
		if edit.Add {
			name = 'a'
		}
		b = appendPart(b, name, edit.Name)
		for _, value := range edit.Values {
			b = appendPart(b, 'v', value)
		}
	}
	return b
}

// ofEdge is a field that the edge sets for origins in place of the client's.
func ofEdge(in *exchange.Inbound, name string) (lines []string, own bool) {
	switch name {
	case "Host", "X-Forwarded-Host":
		return []string{plainHost(in)}, true
	case "X-Forwarded-Proto":
		return []string{in.Scheme}, true
	case "X-Forwarded-Port":
		return []string{strconv.Itoa(int(in.Port))}, true
	case "X-Real-Ip":
		return []string{in.Client.String()}, true
	case "X-Forwarded-For":
		if !in.HideForwardedFor {
			lines = slices.Clip(in.Header[name])
		}
		return append(lines, in.Peer.String()), true
	case "X-Request-Id":
		return in.IDHeader, true
	case "Forwarded":
		return nil, true
	}
	return nil, false
}

// ofCondition names fields that a fill does not send.
func ofCondition(name string) bool {
	switch name {
	case "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range":
		return true
	}
	return false
}

// sent is the header that the origin gets, as far as responses vary by it.
func sent(in *exchange.Inbound, out *exchange.Outbound) func(name string) []string {
	return func(name string) []string {
		if out.Withholds(name) || ofCondition(name) {
			return nil
		}
		lines, own := ofEdge(in, name)
		if !own {
			lines = in.Header[name]
		}
		for i := range out.Edits {
			switch edit := &out.Edits[i]; {
			case edit.Name != name:
			case edit.Add:
				lines = append(slices.Clip(lines), edit.Values...)
			default:
				lines = edit.Values
			}
		}
		return lines
	}
}
