// Package store keeps responses in plain files with an index in memory.
//
// A file has the body first and its head last: `<dir>/<3 hex>/<id>` is a preamble of 16 bytes, the body, the head, and
// a tail of 32 bytes. The head is whole only once the response is, so that a torn file has no valid tail. A validation appends
// another head and tail. A reader accepts a file whose zone, id, key and check sums (CRC32C of the head, and of each 64 KiB of
// the body) agree with the index; the body of a file that was written before this process began is checked as it is first
// read. Anything else is a miss, and the file is deleted.
//
// The index has 48 bytes an object, and 4 to 8 for its hash table. It is kept as a checkpoint and a log of changes, flushed
// once a second, not synced: what a crash loses are entries, whose files the sweep finds again.
//
// One process writes to a zone. It holds a lock; a process that wants it writes a claim, and the holder ends its fills and its
// log before it lets go.
package store
