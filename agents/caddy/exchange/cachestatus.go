package exchange

// CacheState is what the cache did for a request.
type CacheState struct {
	// Word is HIT, MISS, BYPASS, EXPIRED, STALE, UPDATING or REVALIDATED; "" for a site without a cache.
	Word string
	// Hit says that the client got a stored response: HIT, STALE, UPDATING or REVALIDATED. Miss says MISS or EXPIRED.
	Hit, Miss bool
}

// CacheStatus is the fact of it, known once the response is.
var CacheStatus = NewFact[CacheState]()
