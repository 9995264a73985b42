package geo

import (
	"fmt"

	"github.com/oschwald/maxminddb-golang/v2"
)

// maxName is the length in bytes of the longest name of an autonomous system; what is longer is cut.
const maxName = 256

// decodeCountry takes the code where databases of countries and of cities have it. Countries are few: one text each.
func decodeCountry() func(maxminddb.Result) (string, error) {
	codes := map[string]string{}
	return func(r maxminddb.Result) (string, error) {
		var code string
		if err := r.DecodePath(&code, "country_code"); err != nil {
			return "", err
		}
		if code == "" {
			if err := r.DecodePath(&code, "country", "iso_code"); err != nil {
				return "", err
			}
		}
		if code == "" {
			return "", nil
		}
		if len(code) != 2 || !capital(code[0]) || !capital(code[1]) {
			return "", fmt.Errorf("the database has the invalid country %.20q", code)
		}
		if one, ok := codes[code]; ok {
			return one, nil
		}
		codes[code] = code
		return code, nil
	}
}

func capital(c byte) bool { return c >= 'A' && c <= 'Z' }

// system is an autonomous system.
type system struct {
	number uint32
	name   string
}

func decodeSystem(r maxminddb.Result) (system, error) {
	var s system
	if err := r.DecodePath(&s.number, "autonomous_system_number"); err != nil {
		return system{}, err
	}
	if err := r.DecodePath(&s.name, "autonomous_system_organization"); err != nil {
		return system{}, err
	}
	if s.number == 0 {
		return system{}, nil
	}
	s.name = s.name[:min(len(s.name), maxName)]
	return s, nil
}
