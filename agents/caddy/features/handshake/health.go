package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"

	"go.uber.org/zap"
)

const healthYears = 10

// healthConfig is for connections that mean the node itself.
func (t *Terminator) healthConfig() *tls.Config {
	config := t.preparedFor(profile{minimum: tls.VersionTLS12, http2: true})
	config.SessionTicketsDisabled = true
	made, err := t.healthCertificate()
	if err != nil {
		t.core.Log().Error("cannot create the node's own certificate", zap.Error(err))
		return config
	}
	config.Certificates = []tls.Certificate{made}
	return config
}

// healthCertificate makes the node's own certificate: nobody checks who signed it.
func (t *Terminator) healthCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := t.core.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: HealthName}, DNSNames: []string{HealthName},
		// Clocks of those who check may be behind.
		NotBefore: now.AddDate(0, 0, -1), NotAfter: now.AddDate(healthYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
