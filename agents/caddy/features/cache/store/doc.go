// Package store keeps responses in plain files with an index in memory.
//
// A file has the body first and its head last: `<dir>/<3 hex>/<id>` is a preamble of 16 bytes, the body, the head, and
// a tail of 32 bytes. The head is whole only once the response is, so that a torn file has no valid tail. A validation appends
// another head and tail. A reader accepts a file whose zone, id, key and check sums (CRC32C of the head, and of each 64 KiB of
// the body) agree with the index; the body of a file that was written before this process began is checked as it is first
// read. Anything else is a miss, and the file is deleted.
//
// A scrub reads all stored responses at 8 MiB a second, once a day, and deletes those that are damaged.
//
// The index has 48 bytes an object, and 4 to 8 for its hash table. It is kept as a checkpoint and a log of changes, flushed
// once a second, not synced: what a crash loses are entries, whose files the sweep finds again.
//
// Requests and fills wait at most 5 s for the disk, 64 of each kind at once. While 4 of them are late, nothing more is asked of
// it: requests go to the origin, and responses pass through memory. A response without end stops being stored at half of the
// zone, or once the disk has too little room.
//
// The files of hits stay open, 256 at most, and for 30 s after the last: responses share them, and the system sends from them. A
// place that the system does not have in memory is read within the bounds of the disk first.
//
// 256 files that were stored one after another are in one folder. Spread over all folders, files of 1 KiB took 1.5 times the
// processor time to create and delete (ext4). Nothing is synced: a torn file is found by its check sums.
//
// One process writes to a zone. It holds a lock; a process that wants it writes a claim, and the holder ends its fills and its
// log before it lets go.
package store
