package challenge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"sync"
	"unsafe"
)

// Key signs challenges and passes. All nodes of a cluster have the same ones.
type Key struct {
	// 1-32 characters of [A-Za-z0-9_-].
	ID string
	// 16-256 bytes.
	Secret []byte
}

// Keys of a cluster: Current signs, all verify. Next and Previous may be missing. The zero value is no key at all.
type Keys struct {
	Version                 uint64
	Next, Current, Previous *Key
}

const (
	minSecretBytes, maxSecretBytes = 16, 256
	maxKeyIDBytes                  = 32
)

var errNoCurrent = errors.New("there is no current challenge key")

// keySet is the keys in use; it is immutable.
type keySet struct {
	version  uint64
	current  *signer
	previous *signer
	all      []*signer
}

// newKeySet checks keys and takes over the states of those it knows already; nil means there are none.
func newKeySet(keys Keys, before *keySet) (*keySet, error) {
	set := &keySet{version: keys.Version}
	for _, key := range []*Key{keys.Current, keys.Next, keys.Previous} {
		if key == nil {
			continue
		}
		if !isKeyID(key.ID) {
			return nil, fmt.Errorf("%.40q is not a valid id of a challenge key", key.ID)
		}
		if n := len(key.Secret); n < minSecretBytes || n > maxSecretBytes {
			return nil, fmt.Errorf("the secret of challenge key %q has %d bytes, not between %d and %d", key.ID, n, minSecretBytes, maxSecretBytes)
		}
		if set.find(key.ID) != nil {
			return nil, fmt.Errorf("challenge key %q is there twice", key.ID)
		}
		s := before.find(key.ID)
		if s == nil || subtle.ConstantTimeCompare(s.secret, key.Secret) != 1 {
			s = newSigner(*key)
		}
		set.all = append(set.all, s)
	}
	if len(set.all) == 0 {
		return nil, nil
	}
	if keys.Current == nil {
		return nil, errNoCurrent
	}
	set.current = set.all[0]
	if keys.Previous != nil {
		set.previous = set.all[len(set.all)-1]
	}
	return set, nil
}

func (k *keySet) find(id string) *signer {
	if k == nil {
		return nil
	}
	for _, s := range k.all {
		if s.id == id {
			return s
		}
	}
	return nil
}

func isKeyID(id string) bool {
	if id == "" || len(id) > maxKeyIDBytes {
		return false
	}
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// signer makes HMACs with one key. The key is hashed once; each use starts from the state after it.
type signer struct {
	id     string
	secret []byte
	states sync.Pool
}

type macState struct {
	hash hash.Hash
	sum  [sha256.Size]byte
}

func newSigner(key Key) *signer {
	s := &signer{id: key.ID, secret: append([]byte(nil), key.Secret...)}
	s.states.New = func() any { return &macState{hash: hmac.New(sha256.New, s.secret)} }
	return s
}

// sign returns the HMAC of prefix and text one after the other.
func (s *signer) sign(prefix, text string) (sum [sha256.Size]byte) {
	state := s.states.Get().(*macState)
	state.hash.Reset()
	_, _ = state.hash.Write(bytesOf(prefix))
	_, _ = state.hash.Write(bytesOf(text))
	state.hash.Sum(state.sum[:0])
	sum = state.sum
	s.states.Put(state)
	return sum
}

// AppendSignature appends "<id of the key>.<signature>" of a text; false without keys.
func (c *Challenges) AppendSignature(dst []byte, text string) ([]byte, bool) {
	keys := c.keys.Load()
	if keys == nil {
		return dst, false
	}
	sum := keys.current.sign("", text)
	dst = append(append(dst, keys.current.id...), '.')
	return encoding.AppendEncode(dst, sum[:]), true
}

// CheckSignature reports whether a text was signed with a key in use, and whether that key stays for another rotation.
func (c *Challenges) CheckSignature(text, key, signature string) (valid, lasting bool) {
	keys := c.keys.Load()
	s := keys.find(key)
	valid = s != nil && s.verify("", text, signature)
	return valid, valid && s != keys.previous
}

const macBytes = 43

// Strict, so that a value has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// verify reports whether mac is the encoded HMAC of prefix and text.
func (s *signer) verify(prefix, text, mac string) bool {
	var got [sha256.Size + 1]byte
	if len(mac) != macBytes {
		return false
	}
	if n, err := encoding.Decode(got[:], bytesOf(mac)); err != nil || n != sha256.Size {
		return false
	}
	want := s.sign(prefix, text)
	return subtle.ConstantTimeCompare(got[:sha256.Size], want[:]) == 1
}

// bytesOf is the bytes of s, not copied, for callees that only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// textOf is b as a text, not copied, for callees that only read while b does not change.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
