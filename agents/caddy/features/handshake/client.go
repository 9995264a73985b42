package handshake

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
)

// What origins are told of the client's certificate. No client may say any of it itself.
const (
	clientVerify  = "X-Client-Verify"
	clientDigest  = "X-Client-Cert-Sha256"
	clientSubject = "X-Client-Cert-Subject"
	clientSerial  = "X-Client-Cert-Serial"
	// What they begin with.
	clientHeaders = "X-Client-"
	// Longest name of a subject that is told, in bytes.
	maxSubject = 2048
)

// Tells reports whether a header is one of those by which origins are told of the client's certificate; name is in
// canonical form.
func Tells(name string) bool {
	if !strings.HasPrefix(name, clientHeaders) {
		return false
	}
	switch name {
	case clientVerify, clientDigest, clientSubject, clientSerial:
		return true
	}
	return false
}

// ClientCertificate is the stage that refuses connections without the certificate that the site requires, and that tells
// origins of the one that there is, where the site says so. Plain requests are ForceHTTPS's.
func ClientCertificate(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		if x.In.TLS == nil || x.In.Handshake == nil {
			return nil
		}
		s := siteHTTPS.Of(x.Plan)
		if s == nil || s.client == nil {
			return nil
		}
		// What a connection showed that is older than the setting was checked by another one.
		shown := len(x.In.TLS.VerifiedChains) > 0 && x.In.Handshake.ClientPolicy == s.client.policy
		if !shown && s.client.required {
			return requireCertificate(x)
		}
		if s.client.forward {
			tellOrigin(x, shown)
		}
		return nil
	}
}

func tellOrigin(x *exchange.Exchange, shown bool) {
	tell := func(name, value string) {
		x.Out.Edits = append(x.Out.Edits, exchange.HeaderEdit{Name: name, Values: []string{value}})
	}
	if !shown {
		tell(clientVerify, "NONE")
		return
	}
	leaf := x.In.TLS.PeerCertificates[0]
	digest := sha256.Sum256(leaf.Raw)
	subject := leaf.Subject.String()
	tell(clientVerify, "SUCCESS")
	tell(clientDigest, hex.EncodeToString(digest[:]))
	tell(clientSubject, string(exchange.AppendEncoded(nil, subject[:min(len(subject), maxSubject)], printable)))
	tell(clientSerial, strings.ToUpper(leaf.SerialNumber.Text(16)))
}

// printable are bytes that a header may have; a percent sign is encoded, so that what is can be told.
func printable(c byte) bool { return c >= ' ' && c < 0x7f && c != '%' }
