package main

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"
)

// makeCertificates prints a line for each certificate: leaf, authority and key (PKCS #8), DER in base64 with a blank
// between. A %d in the host is the number of the certificate, from the first on; each has a key of its own.
func makeCertificates(arguments []string) error {
	flags := flag.NewFlagSet("certificates", flag.ExitOnError)
	count := flags.Int("count", 1, "how many")
	first := flags.Int("first", 0, "number of the first one")
	kind := flags.String("key", "ecdsa", "ecdsa (P-256) or rsa (2048 bits)")
	host := flags.String("host", "localhost", "name that it is for")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Benchmark authority"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for i := *first; i < *first+*count; i++ {
		name := strings.ReplaceAll(*host, "%d", fmt.Sprint(i))
		key, err := newKey(*kind)
		if err != nil {
			return err
		}
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 3, 0), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
		if err != nil {
			return err
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		text := base64.StdEncoding.EncodeToString
		fmt.Fprintf(out, "%s %s %s\n", text(der), text(authorityDER), text(private))
	}
	return out.Flush()
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("there are no %s keys", kind)
}
