// Package cache keeps responses of sites and serves them again.
//
// The stage `cache` stands before the one that asks origins. It finds the rules whose conditions hold for the request as the
// client sent it, makes the key, and looks into the store (package store). What is fresh, or may be served stale, is sent from
// there; conditions and ranges are evaluated on it. Otherwise one request fetches: its response goes into a file as fast as the
// origin sends it, and this request and all others with the same key read from the file as it grows. A request that the rules
// do not store goes on to the next stage, as without a cache.
//
// A fill runs by itself. If the last client leaves, it goes on only if the response is stored and at most 16 MiB of it are
// left. If the disk fails, the rest passes through 1 MiB of memory at the pace of the slowest client. After a response that is
// not stored, requests for its key do not wait for one another for 120 s; the next one that may be stored is.
//
// Package freshness has the rules of HTTP. Package purge has the marks of purges: a fill keeps the position in the feed with
// which its request left, a later mark makes its response absent, and no request after a mark joins a fill from before it. The
// agent hands the purges over, and acknowledges them once they are on disk. They are read before anything is served: neither
// the agent nor the console is needed for that.
//
// Requests bypass with a body, with a header that names another method or URL, with a path whose normal form is another one,
// with a port that they did not come to, with If-Match or If-Unmodified-Since, with a cookie of the key that is ambiguous, and
// with Authorization unless a rule allows it. What rules changed of the request to the origin is part of the key.
//
// With slices, the origin is asked for 1 MiB at a time. The first slice has the header and the length of the whole; the keys of
// the others have its strong entity tag, so that no other version is found. They are fetched as the body reaches them. Without
// a strong entity tag, or without ranges at the origin, the whole is fetched, and the key is asked for whole for 120 s.
//
// A HEAD is responded to from the store. If it is not, it goes to the origin, and its response may show that what is stored is
// of another version. The successful response to an unsafe request deletes what is stored for its target.
//
// X-Cache says what happened, and Cache-Status (RFC 9211) why. The fact exchange.CacheStatus has the word.
//
// Measured on two shared cores: the index has 54 bytes an object of a million, which are back 0.5 s of processor time after a
// kill. It finds one of a million in 0.2 µs. A request of a site without a cache allocates nothing more; a hit in memory
// allocates ten times, 176 bytes in total, in the two stages. To store 1 KiB takes 55 µs of processor time, most of which is the
// creation of its file, and several times as much where others keep the disk busy. An eviction takes 30 µs.
//
// No site caches without an entry of kind "site-cache". The store touches no disk before one comes.
package cache
