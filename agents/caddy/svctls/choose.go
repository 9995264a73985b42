package svctls

import (
	"crypto/tls"

	"edge.svc/caddy/exchange"
)

// certificate returns the one for a hello: of those of the site that cover the name, ECDSA first, as far as the client can
// check it. Where there is none crypto/tls tells the client that the name is not served here.
func (t *Terminator) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	conn, _ := hello.Conn.(exchange.HandshakeConn)
	if conn == nil {
		return nil, errNoConn
	}
	host, named := serverName(hello.ServerName)
	if !named {
		return nil, errNoConn
	}
	// The configuration may be another one than that of a moment ago.
	_, s, refusal := t.find(host, conn.Port())
	if refusal != nil {
		return nil, nil
	}
	return t.choose(s, host, hello), nil
}

func (t *Terminator) choose(s *site, host string, hello *tls.ClientHelloInfo) *tls.Certificate {
	now := t.core.Now()
	var first, supported *tls.Certificate
	for _, ref := range s.certificates {
		made, err := t.cache.get(ref.id, ref.name)
		if err != nil || made.plain.Leaf.VerifyHostname(host) != nil {
			continue
		}
		found := made.of(s.staple, now)
		if first == nil {
			first = found
		}
		if hello.SupportsCertificate(found) != nil {
			continue
		}
		if made.ecdsa {
			return found
		}
		if supported == nil {
			supported = found
		}
	}
	if supported != nil {
		return supported
	}
	// One that it cannot check: the handshake says so.
	return first
}
