package svctls

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

// pair is a certificate of a test with its key.
type pair struct {
	id       fingerprint
	material *nodev1.CertificateMaterial
	leaf     *x509.Certificate
	key      crypto.Signer
}

func (p *pair) ref(name string) *configv1.CertificateRef {
	return &configv1.CertificateRef{CertificateId: name, Fingerprint: p.id[:], Name: name}
}

func ecdsaKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Keys of RSA take long to make.
var rsaKey = sync.OnceValue(func() crypto.Signer {
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
	authority = sync.OnceValue(func() *x509.Certificate {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, NotBefore: time.Now().Add(-time.Hour),
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
	roots = sync.OnceValue(func() *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AddCert(authority())
		return pool
	})
	serial = big.NewInt(100)
)

// issue makes a certificate of the authority of the tests.
func issue(t testing.TB, key crypto.Signer, names ...string) *pair {
	t.Helper()
	return issueWith(t, key, func(*x509.Certificate) {}, names...)
}

func issueWith(t testing.TB, key crypto.Signer, change func(*x509.Certificate), names ...string) *pair {
	t.Helper()
	serial = new(big.Int).Add(serial, big.NewInt(1))
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, authority(), key.Public(), authorityKey())
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
	id := fingerprint(sha256.Sum256(der))
	return &pair{id, &nodev1.CertificateMaterial{
		CertificateId: "id", Fingerprint: id[:], Chain: [][]byte{der, authority().Raw}, PrivateKey: private,
	}, leaf, key}
}

func frame(t testing.TB, record *edgev1.CertificateRecord) []byte {
	t.Helper()
	payload, err := proto.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, castagnoli))
	return append(out, payload...)
}

func frameMaterial(t testing.TB, p *pair) []byte {
	t.Helper()
	return frame(t, &edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Material{Material: p.material}})
}

func frameStaple(t testing.TB, p *pair, response string, until time.Time) []byte {
	t.Helper()
	return frame(t, &edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Staple{Staple: &nodev1.CertificateStaple{
		Fingerprint: p.id[:], OcspResponse: []byte(response), NextUpdate: until.Unix(),
	}}})
}

func framesOf(t testing.TB, pairs ...*pair) []byte {
	t.Helper()
	var all [][]byte
	for _, p := range pairs {
		all = append(all, frameMaterial(t, p))
	}
	return bytes.Join(all, nil)
}

// appendPack adds to the pack of a state folder as the agent does.
func appendPack(t testing.TB, dir string, frames []byte) {
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

// replacePack puts another file in the place of the pack, as compaction does.
func replacePack(t testing.TB, dir string, frames []byte) {
	t.Helper()
	next := filepath.Join(dir, packName+".new")
	if err := os.WriteFile(next, frames, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(dir, packName)); err != nil {
		t.Fatal(err)
	}
}
