package store

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Separator stands in the text of a key between what is of the URL and the rest.
const Separator = "\x00"

// KeyOf hashes the text of a key and what the request has in the fields that the response varies by. Two texts with one hash
// are two keys: whoever finds an object compares the text.
func KeyOf(key, variant string) Key {
	url, rest, _ := strings.Cut(key, Separator)
	return Key{hash(url, ""), hash(rest, variant)}
}

func hash(a, b string) uint64 {
	text := make([]byte, 0, 256)
	text = binary.LittleEndian.AppendUint32(text, uint32(len(a)))
	text = append(append(text, a...), b...)
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// VariantOf is the hash of the variant alone, for the part of a key behind the separator.
func VariantOf(rest, variant string) uint64 { return hash(rest, variant) }
