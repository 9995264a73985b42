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
