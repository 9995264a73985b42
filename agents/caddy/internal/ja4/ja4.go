package ja4

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"slices"
)

const (
	extServerName = 0x0000
	extALPN       = 0x0010

	// Of each hash, in characters.
	hashLength = 12
	// The hash of an empty list.
	noList = "000000000000"
	// Of hexadecimal numbers.
	digits = "0123456789abcdef"
	// Room for the lists of usual clients.
	usualList = 64
)

// Of returns the fingerprint of the client that sent hello, over QUIC or TCP. It is whole whatever the client sent.
//
// The legacy version, which counts where a client names no supported versions, is known only up to TLS 1.2 (crypto/tls
// turns it into a list of versions): a client of SSL 3 and before, whose handshake fails, has the unknown version 00.
func Of(hello *tls.ClientHelloInfo, quic bool) string {
	var room [2 * usualList]uint16
	ciphers := without(room[:0:usualList], hello.CipherSuites)
	extensions := without(room[usualList:usualList], hello.Extensions)

	// 10 readable characters and two hashes.
	var made [10 + 2*(1+hashLength)]byte
	out := append(made[:0], 't')
	if quic {
		out[0] = 'q'
	}
	out = append(out, version(hello.SupportedVersions)...)
	if slices.Contains(extensions, extServerName) {
		out = append(out, 'd')
	} else {
		out = append(out, 'i')
	}
	out = twoDigits(out, len(ciphers))
	out = twoDigits(out, len(extensions))
	out = appendALPN(out, hello.SupportedProtos)

	slices.Sort(ciphers)
	out = appendHash(append(out, '_'), ciphers, nil)

	// Named in the readable part already, so that a client is the same wherever it goes.
	extensions = slices.DeleteFunc(extensions, func(id uint16) bool { return id == extServerName || id == extALPN })
	slices.Sort(extensions)
	out = appendHash(append(out, '_'), extensions, hello.SignatureSchemes)
	return string(out)
}

// isGREASE reports whether a value is one that clients send only so that servers learn to ignore the unknown: both bytes
// are the same and end in a.
func isGREASE(v uint16) bool { return v&0x0f == 0x0a && v>>8 == v&0xff }

// without appends the values that are not GREASE.
func without(to, values []uint16) []uint16 {
	for _, v := range values {
		if !isGREASE(v) {
			to = append(to, v)
		}
	}
	return to
}

// version is the highest one.
func version(versions []uint16) string {
	highest := uint16(0)
	for _, v := range versions {
		if !isGREASE(v) {
			highest = max(highest, v)
		}
	}
	switch highest {
	case tls.VersionTLS13:
		return "13"
	case tls.VersionTLS12:
		return "12"
	case tls.VersionTLS11:
		return "11"
	case tls.VersionTLS10:
		return "10"
	case 0x0300:
		return "s3"
	case 0x0002:
		return "s2"
	case 0xfeff:
		return "d1"
	case 0xfefd:
		return "d2"
	case 0xfefc:
		return "d3"
	}
	return "00"
}

// twoDigits appends a number up to 99.
func twoDigits(to []byte, n int) []byte {
	n = min(n, 99)
	return append(to, '0'+byte(n/10), '0'+byte(n%10))
}

// appendALPN appends the first and last character of the first protocol, or of its hexadecimal form where one of the two
// is neither letter nor digit.
func appendALPN(to []byte, protocols []string) []byte {
	for _, p := range protocols {
		// The published algorithm ignores GREASE wherever it is, though none of its captures has it here: what a client draws
		// anew for each hello tells nothing of it.
		if len(p) == 2 && isGREASE(uint16(p[0])<<8|uint16(p[1])) {
			continue
		}
		if p == "" {
			break
		}
		first, last := p[0], p[len(p)-1]
		if alphanumeric(first) && alphanumeric(last) {
			return append(to, first, last)
		}
		return append(to, digits[first>>4], digits[last&0x0f])
	}
	return append(to, '0', '0')
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// appendHash appends the hash of the list, with the signature algorithms after it.
func appendHash(to []byte, list []uint16, algorithms []tls.SignatureScheme) []byte {
	if len(list) == 0 {
		return append(to, noList...)
	}
	var room [1024]byte
	text := room[:0]
	for i, v := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendHex(text, v)
	}
	separator := byte('_')
	for _, v := range algorithms {
		if !isGREASE(uint16(v)) {
			text = appendHex(append(text, separator), uint16(v))
			separator = ','
		}
	}
	sum := sha256.Sum256(text)
	return hex.AppendEncode(to, sum[:hashLength/2])
}

func appendHex(to []byte, v uint16) []byte {
	return append(to, digits[v>>12], digits[v>>8&0x0f], digits[v>>4&0x0f], digits[v&0x0f])
}
