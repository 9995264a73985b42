package handshake

import (
	"crypto/tls"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// profile is what a configuration is prepared for.
type profile struct {
	minimum    uint16
	compatible bool
	http2      bool
}

func profileOf(m *configv1.SiteHttps) (p profile, _ error) {
	switch m.GetMinimumVersion() {
	case configv1.TlsVersion_TLS_VERSION_1_2:
		p.minimum = tls.VersionTLS12
	case configv1.TlsVersion_TLS_VERSION_1_3:
		p.minimum = tls.VersionTLS13
	default:
		return p, errVersion
	}
	switch m.GetCipherProfile() {
	case configv1.CipherProfile_CIPHER_PROFILE_MODERN:
	case configv1.CipherProfile_CIPHER_PROFILE_COMPATIBLE:
		p.compatible = true
	default:
		return p, errProfile
	}
	p.http2 = m.GetHttp2()
	return p, nil
}

// Of TLS 1.2; those of TLS 1.3 are fixed.
var (
	modernCiphers = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	compatibleCiphers = append(modernCiphers[:len(modernCiphers):len(modernCiphers)],
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)
	curves = []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384}
)

func (p profile) ciphers() []uint16 {
	if p.compatible {
		return compatibleCiphers
	}
	return modernCiphers
}

func (p profile) protocols() []string {
	if p.http2 {
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1"}
}

// base is what all configurations have in common.
func (t *Terminator) base() *tls.Config {
	return &tls.Config{
		Time: t.core.Now, MinVersion: tls.VersionTLS12, CipherSuites: modernCiphers, CurvePreferences: curves,
		VerifyConnection: t.verified,
	}
}

// prepare makes the configurations that sites share.
func (t *Terminator) prepare() {
	t.prepared = map[profile]*tls.Config{}
	for _, minimum := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, compatible := range []bool{false, true} {
			for _, http2 := range []bool{false, true} {
				p := profile{minimum, compatible, http2}
				t.prepared[p] = t.preparedFor(p)
			}
		}
	}
	t.quic = t.base()
	t.quic.MinVersion, t.quic.NextProtos = tls.VersionTLS13, []string{"h3"}
}

func (t *Terminator) preparedFor(p profile) *tls.Config {
	config := t.base()
	config.MinVersion, config.CipherSuites, config.NextProtos = p.minimum, p.ciphers(), p.protocols()
	return config
}

// configFor makes the configuration of a site that asks for client certificates.
func (t *Terminator) configFor(s *site) *tls.Config {
	config := t.preparedFor(s.profile)
	// Who has none is told so by an answer; one that does not hold ends the handshake.
	config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, s.client.authorities
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := s.client.verify(state); err != nil {
			return err
		}
		return t.verified(state)
	}
	return config
}

// meant is what a handshake is about, from its hello to its tickets: whatever configuration comes meanwhile, all of it goes by
// the site as it was.
type meant struct {
	*Terminator
	site *site
	host string
}

// config is that of one handshake.
func (m *meant) config(quic bool) *tls.Config {
	prepared := m.prepared[m.site.profile]
	switch {
	case quic:
		prepared = m.quic
	case m.site.client != nil:
		prepared = m.site.client.config
	}
	config := prepared.Clone()
	config.GetCertificate, config.WrapSession, config.UnwrapSession = m.certificate, m.wrap, m.unwrap
	return config
}

// verify fails where too many certificates lie between a client's and its authority.
func (c *clientCertificates) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	for _, chain := range state.VerifiedChains {
		if len(chain)-2 <= c.depth {
			return nil
		}
	}
	return errTooDeep
}
