package exchange

import "time"

// LatencyBounds are the upper bounds of the buckets in milliseconds, the same as in contract/latency-buckets.ts. One more
// bucket is above the last.
var LatencyBounds = [...]int64{
	1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16_384, 32_768,
}

// LatencyBuckets is how many buckets there are.
const LatencyBuckets = len(LatencyBounds) + 1

// LatencyBucket is the bucket of what took so long.
func LatencyBucket(took time.Duration) int {
	for i, bound := range LatencyBounds {
		if took <= time.Duration(bound)*time.Millisecond {
			return i
		}
	}
	return len(LatencyBounds)
}
