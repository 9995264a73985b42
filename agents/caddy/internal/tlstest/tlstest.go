// Package tlstest makes certificates for tests, and the pack in which the edge finds them.
package tlstest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"hash/crc32"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const packName = "certificates.pack"

// Pair is a certificate of a test with its key.
type Pair struct {
	ID       [32]byte
	Material *nodev1.CertificateMaterial
	Leaf     *x509.Certificate
	Key      crypto.Signer
}

// Ref names the certificate as entries do.
func (p *Pair) Ref(name string) *configv1.CertificateRef {
	return &configv1.CertificateRef{CertificateId: name, Fingerprint: p.ID[:], Name: name}
}

// ECDSAKey makes a key.
func ECDSAKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// RSAKey is the one key of RSA: they take long to make.
var RSAKey = sync.OnceValue(func() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

var (
	authorityKey = sync.OnceValue(func() crypto.Signer {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		return key
	})
	// Authority signs the certificates.
	Authority = sync.OnceValue(func() *x509.Certificate {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Authority"}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, authorityKey().Public(), authorityKey())
		if err != nil {
			panic(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			panic(err)
		}
		return made
	})
	// Roots are what clients trust.
	Roots = sync.OnceValue(func() *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AddCert(Authority())
		return pool
	})
	serial = big.NewInt(100)
)

// Issue makes a certificate that is good for twelve hours.
func Issue(t testing.TB, key crypto.Signer, names ...string) *Pair {
	t.Helper()
	return IssueWith(t, key, func(*x509.Certificate) {}, names...)
}

// IssueWith makes a certificate from a template that is changed first.
func IssueWith(t testing.TB, key crypto.Signer, change func(*x509.Certificate), names ...string) *Pair {
	t.Helper()
	serial = new(big.Int).Add(serial, big.NewInt(1))
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, Authority(), key.Public(), authorityKey())
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	id := sha256.Sum256(der)
	return &Pair{id, &nodev1.CertificateMaterial{
		CertificateId: "id", Fingerprint: id[:], Chain: [][]byte{der, Authority().Raw}, PrivateKey: private,
	}, leaf, key}
}

func frame(t testing.TB, record *edgev1.CertificateRecord) []byte {
	t.Helper()
	payload, err := proto.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, payload...)
}

// FrameMaterial is the record of a certificate.
func FrameMaterial(t testing.TB, p *Pair) []byte {
	t.Helper()
	return frame(t, &edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Material{Material: p.Material}})
}

// FrameStaple is the record of a staple.
func FrameStaple(t testing.TB, p *Pair, response string, until time.Time) []byte {
	t.Helper()
	return frame(t, &edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Staple{Staple: &nodev1.CertificateStaple{
		Fingerprint: p.ID[:], OcspResponse: []byte(response), NextUpdate: until.Unix(),
	}}})
}

// Frames are the records of certificates one after the other.
func Frames(t testing.TB, pairs ...*Pair) []byte {
	t.Helper()
	var all [][]byte
	for _, p := range pairs {
		all = append(all, FrameMaterial(t, p))
	}
	return bytes.Join(all, nil)
}

// AppendPack adds to the pack of a state folder as the agent does.
func AppendPack(t testing.TB, dir string, frames []byte) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, packName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(frames); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// ReplacePack puts another file in the place of the pack, as compaction does.
func ReplacePack(t testing.TB, dir string, frames []byte) {
	t.Helper()
	next := filepath.Join(dir, packName+".new")
	if err := os.WriteFile(next, frames, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(dir, packName)); err != nil {
		t.Fatal(err)
	}
}
