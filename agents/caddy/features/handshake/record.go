package handshake

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields of CertificateRecord, CertificateMaterial and CertificateStaple.
const (
	recordMaterial      protowire.Number = 1
	recordStaple        protowire.Number = 2
	materialFingerprint protowire.Number = 2
	stapleFingerprint   protowire.Number = 1
)

// recordOf finds out whose record a payload is, and whether it is a staple, without decoding the rest: a pack of a hundred
// thousand certificates is read before anything is served.
func recordOf(payload []byte) (id fingerprint, staple, ok bool) {
	number, inner, ok := lastBytes(payload, recordMaterial, recordStaple)
	if !ok {
		return id, false, false
	}
	staple = number == recordStaple
	field := materialFingerprint
	if staple {
		field = stapleFingerprint
	}
	_, found, ok := lastBytes(inner, field, field)
	if !ok || len(found) != len(id) {
		return id, false, false
	}
	copy(id[:], found)
	return id, staple, true
}

// lastBytes returns the last of two fields of bytes in a message, and which it is.
func lastBytes(message []byte, a, b protowire.Number) (number protowire.Number, value []byte, ok bool) {
	for len(message) > 0 {
		at, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, nil, false
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(at, kind, message); n < 0 {
			return 0, nil, false
		}
		if (at == a || at == b) && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(message)
			number, value, ok = at, inner, true
		}
		message = message[n:]
	}
	return number, value, ok
}
