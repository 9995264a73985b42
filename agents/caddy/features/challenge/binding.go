package challenge

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
)

const (
	maxNetworkBytes = 2 + 16
	agentHashBytes  = 16
)

// binding is what challenges and passes are bound to: a site, the network of the client and its User-Agent. It holds
// the texts in the form in which they are signed.
type binding struct {
	site         string
	network      [maxNetworkBytes]byte
	networkBytes int
	agent        [agentHashBytes]byte
}

func bind(site string, client netip.Addr, userAgent string) (b binding) {
	b.site = site
	b.networkBytes = len(appendNetwork(b.network[:0], client))
	sum := sha256.Sum256(bytesOf(userAgent))
	hex.Encode(b.agent[:], sum[:agentHashBytes/2])
	return b
}

func (b *binding) networkText() []byte { return b.network[:b.networkBytes] }

// appendNetwork appends "4:a.b.c" for a /24 or "6:" and 16 hex digits for a /64; nothing for an address that is none.
func appendNetwork(dst []byte, client netip.Addr) []byte {
	client = client.Unmap()
	switch {
	case client.Is4():
		a := client.As4()
		dst = append(dst, '4', ':')
		dst = strconv.AppendUint(dst, uint64(a[0]), 10)
		dst = append(dst, '.')
		dst = strconv.AppendUint(dst, uint64(a[1]), 10)
		dst = append(dst, '.')
		return strconv.AppendUint(dst, uint64(a[2]), 10)
	case client.Is6():
		a := client.As16()
		return hex.AppendEncode(append(dst, '6', ':'), a[:8])
	}
	return dst
}

// fields reads texts separated by "|" from decoded payloads.
type fields struct {
	rest []byte
	bad  bool
}

// next returns the field up to the next separator; the last one ends with the text.
func (f *fields) next() []byte {
	if f.rest == nil {
		f.bad = true
		return nil
	}
	for i, c := range f.rest {
		if c == '|' {
			field := f.rest[:i]
			f.rest = f.rest[i+1:]
			return field
		}
	}
	field := f.rest
	f.rest = nil
	return field
}

// is takes a field and reports whether it is text.
func (f *fields) is(text string) bool { return string(f.next()) == text }

// number takes a field of 1 to 12 decimal digits.
func (f *fields) number() int64 {
	digits := f.next()
	if len(digits) == 0 || len(digits) > 12 {
		f.bad = true
		return 0
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			f.bad = true
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// end reports whether every field was there and nothing follows.
func (f *fields) end() bool { return !f.bad && f.rest == nil }
