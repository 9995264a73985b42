package handshake

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// certificate is one as handshakes need it.
type certificate struct {
	// With and without the staple; stapled is nil where there is none.
	plain, stapled *tls.Certificate
	stapledUntil   time.Time
	ecdsa          bool
	// Memory that it takes, bytes.
	size int64
}

// of returns the certificate with what its authority said of it, where that is wanted and still holds.
func (c *certificate) of(staple bool, now time.Time) *tls.Certificate {
	if staple && c.stapled != nil && now.Before(c.stapledUntil) {
		return c.stapled
	}
	return c.plain
}

var (
	errNoChain     = errors.New("the certificate has no chain")
	errOtherLeaf   = errors.New("the chain begins with another certificate")
	errKeyForm     = errors.New("cannot read the private key")
	errKeyMismatch = errors.New("the private key does not belong to the certificate")
)

// parse makes a certificate of its material. What it says of what is wrong has nothing of the key in it.
func parse(id fingerprint, material *nodev1.CertificateMaterial, staple *nodev1.CertificateStaple) (*certificate, error) {
	chain := material.GetChain()
	if len(chain) == 0 {
		return nil, errNoChain
	}
	if sha256.Sum256(chain[0]) != id {
		return nil, errOtherLeaf
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(material.GetPrivateKey())
	if err != nil {
		return nil, errKeyForm
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errKeyForm
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(leaf.PublicKey) {
		return nil, errKeyMismatch
	}
	made := &certificate{plain: &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}}
	_, made.ecdsa = leaf.PublicKey.(*ecdsa.PublicKey)
	if response := staple.GetOcspResponse(); len(response) > 0 {
		with := *made.plain
		with.OCSPStaple = bytes.Clone(response)
		made.stapled, made.stapledUntil = &with, time.Unix(staple.GetNextUpdate(), 0)
	}
	made.size = sizeOf(chain, len(material.GetPrivateKey()), len(staple.GetOcspResponse()))
	return made, nil
}

// sizeOf is the memory that a certificate takes once it is parsed, and somewhat more than measured: 3.7 KB of one for a key
// of P-256 and 8.3 KB for one of RSA with 2048 bits, each with a chain of two.
func sizeOf(chain [][]byte, key, staple int) int64 {
	size := 3<<10 + 2*len(chain[0]) + 4*key + 2*staple
	for _, der := range chain {
		size += len(der)
	}
	return int64(size)
}
