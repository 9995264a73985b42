package count

import "time"

// latencyBounds are the upper bounds of the buckets in milliseconds, the same as in contract/latency-buckets.ts. One more
// bucket is above the last.
var latencyBounds = [...]int64{
	1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16_384, 32_768,
}

const latencyBuckets = len(latencyBounds) + 1

// bucketOf is the bucket of an answer that took so long.
func bucketOf(took time.Duration) int {
	for i, bound := range latencyBounds {
		if took <= time.Duration(bound)*time.Millisecond {
			return i
		}
	}
	return len(latencyBounds)
}
