package edgetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"hash/crc32"
	"math/big"
	"time"

	"google.golang.org/protobuf/proto"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// Certificate is one of a test that sites may have.
type Certificate struct {
	// Roots has it alone: it is its own authority.
	Roots *x509.CertPool
	// Pack is a pack of certificates with this one.
	Pack        []byte
	fingerprint [sha256.Size]byte
}

// NewCertificate makes a certificate for names.
func NewCertificate(names ...string) *Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	c := &Certificate{Roots: x509.NewCertPool(), fingerprint: sha256.Sum256(der)}
	c.Roots.AddCert(must(x509.ParseCertificate(der)))
	payload := must(proto.Marshal(&edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Material{Material: &nodev1.CertificateMaterial{
		CertificateId: "id", Fingerprint: c.fingerprint[:], Chain: [][]byte{der}, PrivateKey: must(x509.MarshalPKCS8PrivateKey(key)),
	}}}))
	c.Pack = binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	c.Pack = binary.LittleEndian.AppendUint32(c.Pack, crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
	c.Pack = append(c.Pack, payload...)
	return c
}

// HTTPS is the entry of a site that has the certificate, and whatever else is changed.
func (c *Certificate) HTTPS(siteID string, change ...func(*configv1.SiteHttps)) *configv1.Entry {
	m := &configv1.SiteHttps{
		Certificates:   []*configv1.CertificateRef{{CertificateId: "id", Fingerprint: c.fingerprint[:], Name: "test"}},
		MinimumVersion: configv1.TlsVersion_TLS_VERSION_1_2, CipherProfile: configv1.CipherProfile_CIPHER_PROFILE_MODERN, Http2: true,
	}
	for _, each := range change {
		each(m)
	}
	return Entry("site-https", siteID, m)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
