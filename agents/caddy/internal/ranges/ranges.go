// Package ranges reads the fields of entries and finds those that are out of their range.
package ranges

import (
	"fmt"
	"time"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Check reads fields and remembers the first that is out of its range. The zero value has met none.
type Check struct {
	// Err names that field.
	Err error
}

// Number reads a number between least and most.
func (c *Check) Number(field string, v, least, most uint32) uint32 {
	if (v < least || v > most) && c.Err == nil {
		c.Err = fmt.Errorf("%s is %d; it must be between %d and %d", field, v, least, most)
	}
	return v
}

// Seconds reads a time in whole seconds between least and most.
func (c *Check) Seconds(field string, v, least, most uint32) time.Duration {
	return time.Duration(c.Number(field, v, least, most)) * time.Second
}

// Level reads a challenge, unset where there is none.
func (c *Check) Level(field string, v configv1.ChallengeType, unset exchange.Level) exchange.Level {
	if v == configv1.ChallengeType_CHALLENGE_TYPE_UNSPECIFIED {
		return unset
	}
	if _, known := configv1.ChallengeType_name[int32(v)]; !known && c.Err == nil {
		c.Err = fmt.Errorf("%s %d needs a capability that this node does not have", field, v)
	}
	return exchange.Level(v)
}
