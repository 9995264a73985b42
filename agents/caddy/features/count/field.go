package count

import "edge.svc/caddy/exchange"

// field says what a figure of a site and minute is. The values stand in files.
type field uint32

const (
	fieldRequests field = 1
	fieldSent     field = 2
	fieldReceived field = 3
	// Responses that the cache had, those it did not have, and what the former took.
	fieldCacheHits     field = 4
	fieldCacheMisses   field = 5
	fieldCacheHitBytes field = 6
	// And one for each bucket.
	fieldLatency field = 0x100
	// And the status.
	fieldStatus field = 0x1000
	// And the number of the name: in memory that of exchange.Count, in a file its own.
	fieldName field = 0x100000
	// And the number of the rule in the segment, times ruleEvents, and the event.
	fieldRule field = 0x800000
	// Beyond what fits a record.
	fieldEnd field = 0x1000000

	maxStatus = 999
	otherName = fieldName + field(exchange.OtherCount)
)

func statusField(status int) field { return fieldStatus + field(min(max(status, 0), maxStatus)) }

func nameField(c exchange.Count) field { return fieldName + field(c) }

func (f field) isLatency() bool {
	return f >= fieldLatency && f < fieldLatency+field(exchange.LatencyBuckets)
}
func (f field) isStatus() bool { return f >= fieldStatus && f <= fieldStatus+maxStatus }
func (f field) isName() bool   { return f >= fieldName && f < fieldRule }
func (f field) isRule() bool   { return f >= fieldRule && f < fieldEnd }
