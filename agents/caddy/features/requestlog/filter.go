package requestlog

import (
	"net/netip"
	"strings"
	"time"

	"edge.svc/caddy/exchange"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	maxFilters = 16
	anyReason  = "any"
)

// tailFilter is what a reader looks for, ready to be compared.
type tailFilter struct {
	*nodev1.LogTailFilter
	clients          []netip.Prefix
	agent, referer   string
	broken, wantsGeo bool
}

// filtersOf reads the filters of a watch; none = every request.
func filtersOf(watch *nodev1.LogTailWatch) []tailFilter {
	given := watch.GetFilters()
	given = given[:min(len(given), maxFilters)]
	filters := make([]tailFilter, 0, len(given))
	for _, f := range given {
		filter := tailFilter{LogTailFilter: f, agent: strings.ToLower(f.GetUserAgent()), referer: strings.ToLower(f.GetReferer())}
		for _, text := range f.GetClients() {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				var addr netip.Addr
				addr, err = netip.ParseAddr(text)
				prefix = netip.PrefixFrom(addr, addr.BitLen())
			}
			// What cannot be read is in no network.
			filter.broken = filter.broken || err != nil
			filter.clients = append(filter.clients, prefix)
		}
		filter.wantsGeo = f.GetCountry() != "" || f.GetAsn() != 0
		filters = append(filters, filter)
	}
	return filters
}

func matches(filters []tailFilter, x *exchange.Exchange, l *Log, why refusal, now time.Time) bool {
	for i := range filters {
		if filters[i].matches(x, l, why, now) {
			return true
		}
	}
	return len(filters) == 0
}

// matches compares with what the row would say. The console does it again with the row itself.
func (f *tailFilter) matches(x *exchange.Exchange, l *Log, why refusal, now time.Time) bool {
	in := &x.In
	status := uint32(x.Status())
	switch {
	case f.broken,
		f.Status != 0 && status != f.Status,
		f.StatusClass != 0 && status/100 != f.StatusClass,
		f.Method != "" && in.Method != f.Method,
		f.Host != "" && in.Host != f.Host,
		f.RequestId != "" && in.ID != f.RequestId,
		f.BlockReason == anyReason && why.reason == "",
		f.BlockReason != "" && f.BlockReason != anyReason && why.reason != f.BlockReason,
		f.MinDurationMs != 0 && now.Sub(x.Begun).Milliseconds() < int64(f.MinDurationMs):
		return false
	}
	client := in.Client.Unmap()
	for _, prefix := range f.clients {
		if !prefix.Contains(client) {
			return false
		}
	}
	if f.Path != "" {
		path, _, _ := strings.Cut(in.Target.Raw, "?")
		if !strings.HasPrefix(clean(path, maxPath), f.Path) {
			return false
		}
	}
	if f.CacheStatus != "" {
		state, known := exchange.CacheStatus.Known(x)
		if !known || state.Word != f.CacheStatus {
			return false
		}
	}
	if f.wantsGeo {
		place := exchange.PlaceOf(x, l.geo())
		if f.Country != "" && place.Country != f.Country || f.Asn != 0 && uint32(place.AS) != f.Asn {
			return false
		}
	}
	if f.agent != "" && !strings.Contains(strings.ToLower(first(in.Header["User-Agent"])), f.agent) ||
		f.referer != "" && !strings.Contains(strings.ToLower(first(in.Header["Referer"])), f.referer) {
		return false
	}
	return f.Ja4 == "" || in.Handshake != nil && ja4.Of(x.Plan) != nil && in.JA4() == f.Ja4
}
