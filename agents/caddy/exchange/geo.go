package exchange

import "net/netip"

// Geo knows what databases say about addresses, without allocating. Addresses are those of clients, unmapped and without
// a zone; private ones and others without a record have none. ready says whether there is a database to ask: without one,
// whatever depends on the answer fails, for an address nobody can know of is not one without a country.
type Geo interface {
	// Country returns the two capital letters of ISO 3166-1, "" when no country is recorded.
	Country(addr netip.Addr) (code string, ready bool)
	// AS returns the number of the autonomous system and its name, 0 and "" when none is recorded.
	AS(addr netip.Addr) (number uint32, name string, ready bool)
}

// Place is what databases say about a client's address. A database that is not there has said nothing.
type Place struct {
	// Country as Geo returns it.
	Country string
	// AS is the number of the autonomous system, Network its name.
	AS                    uint32
	Network               string
	CountryReady, ASReady bool
}

var place = NewFact[Place]()

// PlaceOf returns where the client of an exchange is. The databases are asked when somebody first asks, once an exchange.
func PlaceOf(x *Exchange, g Geo) Place {
	if p, ok := place.Known(x); ok {
		return p
	}
	p := place.Of(x)
	if g != nil {
		p.Country, p.CountryReady = g.Country(x.In.Client)
		p.AS, p.Network, p.ASReady = g.AS(x.In.Client)
	}
	return *p
}
