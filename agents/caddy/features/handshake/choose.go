package handshake

import (
	"crypto/tls"
	"time"
)

// certificate returns the one for a hello: of those of the site that cover the name, as far as the client can check it, one
// that is valid now, and ECDSA first. Where there is none crypto/tls tells the client that the name is not served here.
func (m *meant) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.choose(m.site, m.host, hello), nil
}

func (t *Terminator) choose(s *site, host string, hello *tls.ClientHelloInfo) *tls.Certificate {
	now := t.core.Now()
	var best, first *tls.Certificate
	rank := 0
	for _, ref := range s.certificates {
		made, err := t.cache.get(ref.id, ref.name)
		if err != nil || made.plain.Leaf.VerifyHostname(host) != nil {
			continue
		}
		found := made.of(s.staple, now)
		if first == nil {
			first = found
		}
		// There is nothing to choose from: a client that cannot check it is told so either way.
		if len(s.certificates) == 1 {
			break
		}
		if r := made.rank(now); r > rank && hello.SupportsCertificate(found) == nil {
			best, rank = found, r
		}
		if rank == bestRank {
			break
		}
	}
	if best != nil {
		return best
	}
	// One that it cannot check: the handshake says so.
	return first
}

// covers reports whether a certificate of the site has a name for a host, so that its handshake can succeed. One that cannot
// be read just now counts as if it had: a failing disk must not bring a site back to plain HTTP.
func (t *Terminator) covers(s *site, host string) bool {
	for _, ref := range s.certificates {
		if made, err := t.cache.get(ref.id, ref.name); err != nil || made.plain.Leaf.VerifyHostname(host) == nil {
			return true
		}
	}
	return false
}

const bestRank = 4

// rank is the higher the better a certificate is for a client that can check it, from 1 on.
func (c *certificate) rank(now time.Time) int {
	rank := 1
	if c.ecdsa {
		rank++
	}
	// Where one of two was not renewed in time the other serves all that can check it.
	if !now.Before(c.plain.Leaf.NotBefore) && !now.After(c.plain.Leaf.NotAfter) {
		rank += 2
	}
	return rank
}
