package geo

import (
	"net/netip"
	"sync"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
	"go.uber.org/zap"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// refreshEvery is how often the files are looked at: a new one takes effect without a restart.
const refreshEvery = time.Minute

var (
	countryFile = core.NewOption("geoip_country", "", nil)
	asnFile     = core.NewOption("geoip_asn", "", nil)
	_           = core.NewComponent("geoip", newComponent)
)

var _ exchange.Geo = (*component)(nil)

// What a node understands; whether it has the files is in its status.
func init() { core.RegisterCapability("geoip-country-v1", "geoip-asn-v1") }

type component struct {
	core      *core.Core
	countries *source[string]
	systems   *source[system]
	// Closed once both files were read for the first time.
	first chan struct{}
}

// newComponent begins to read while the core reads its journals.
func newComponent(c *core.Core) *component {
	g := &component{
		core:      c,
		countries: newSource(countryFile.Of(c), decodeCountry),
		systems:   newSource(asnFile.Of(c), func() func(maxminddb.Result) (system, error) { return decodeSystem }),
		first:     make(chan struct{}),
	}
	go func() {
		defer close(g.first)
		g.refresh()
	}()
	return g
}

// Restore waits: a request that comes at once would fail for want of what is nearly there.
func (g *component) Restore() { <-g.first }

// Run takes over files that were replaced.
func (g *component) Run(stop <-chan struct{}) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			g.refresh()
		}
	}
}

func (g *component) refresh() {
	var both sync.WaitGroup
	both.Go(func() { refreshAndTell(g.core, "country", g.countries) })
	both.Go(func() { refreshAndTell(g.core, "asn", g.systems) })
	both.Wait()
}

// refreshAndTell logs what becomes of a file, once.
func refreshAndTell[R comparable](c *core.Core, what string, s *source[R]) {
	changed, err := s.refresh()
	switch {
	case !changed:
	case err != nil:
		c.Log().Warn("cannot use a GeoIP database; the former one stays", zap.String("database", what), zap.Error(err))
	default:
		c.Log().Info("read a GeoIP database", zap.String("database", what), zap.Time("built", s.database.Load().built))
	}
}

// FillStatus says which databases are ready.
func (g *component) FillStatus(status *edgev1.GetStatusResponse) {
	status.Geoip = &nodev1.GeoIp{Country: g.countries.report(), Asn: g.systems.report()}
}

// Country returns the code of the country of an address.
func (g *component) Country(addr netip.Addr) (code string, ready bool) {
	return find(g.countries, addr)
}

// AS returns the autonomous system of an address.
func (g *component) AS(addr netip.Addr) (number uint32, name string, ready bool) {
	s, ready := find(g.systems, addr)
	return s.number, s.name, ready
}

// find looks an address up that can have a record. A tree that ends nowhere is a damaged database.
func find[R comparable](s *source[R], addr netip.Addr) (record R, ready bool) {
	d := s.database.Load()
	if d == nil {
		return record, false
	}
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return record, true
	}
	record, err := d.find(addr.Unmap())
	return record, err == nil
}
