package handshake

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const kind = "site-https"

// siteHTTPS is what a site has of HTTPS; a site without it has none.
var siteHTTPS exchange.Part[site]

func init() {
	siteHTTPS = core.PartOf(kind, "https", compileSite)
	// A part that no site has: an entry compiles once there is material of all that it names. What serves already goes on,
	// whatever becomes of the pack.
	core.PartOf(kind, "https: material", checkMaterial)
	// Who must show a certificate gets in by no other way while it cannot be asked for.
	core.GuardsOf(kind, func(m *configv1.SiteHttps) bool { return m.GetClientCertificates().GetMode() == required })
	core.ConfigureKind(kind, core.KindOptions{
		Features: []string{"https-v1", "tls-pending-domains-v1", "probe-health-v1", "client-certificates-v1"},
		MaxBody:  1 << 20,
	})
}

const required = configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_REQUIRED

const (
	maxCertificates = 4
	maxAuthorities  = 10
	maxDepth        = 5
	maxHSTSAge      = 63_072_000
)

// site is what a site has of HTTPS.
type site struct {
	certificates []reference
	profile      profile
	http3        bool
	staple       bool
	pending      domains
	redirect     *redirect
	// Value of Strict-Transport-Security; nil for none.
	hsts   []string
	client *clientCertificates
	// What sessions are bound to: one is resumed where it is the same.
	policy [policyBytes]byte
}

// reference names a certificate.
type reference struct {
	id   fingerprint
	name string
}

// redirect is where plain requests are sent.
type redirect struct {
	status   int
	port     string
	excluded domains
}

// clientCertificates says what is asked of clients.
type clientCertificates struct {
	required, forward bool
	authorities       *x509.CertPool
	depth             int
	// What certificates are checked by.
	policy [policyBytes]byte
	// Prepared, for its authorities are the site's alone.
	config *tls.Config
}

var (
	errCertificates = errors.New("the site must have 1 to 4 certificates")
	errVersion      = errors.New("the minimum TLS version must be 1.2 or 1.3")
	errProfile      = errors.New("the cipher profile is unknown")
	errRedirect     = errors.New("the status or the port of the HTTPS redirect is not valid")
	errHSTS         = errors.New("hsts_max_age must be at most 63072000")
	errClientMode   = errors.New("the mode of client certificates is unknown")
	errAuthorities  = errors.New("client certificates need 1 to 10 readable authorities")
	errDepth        = errors.New("the depth of client certificates must be between 1 and 5")
	errClientHTTP3  = errors.New("client certificates cannot be used with HTTP/3")
)

func compileSite(c *core.Core, siteID string, m *configv1.SiteHttps) (*site, error) {
	s := &site{http3: m.GetHttp3(), staple: m.GetOcspStapling(), pending: domainsOf(m.GetPending())}
	var err error
	if s.certificates, err = referencesOf(m); err != nil {
		return nil, err
	}
	if s.profile, err = profileOf(m); err != nil {
		return nil, err
	}
	if s.redirect, err = redirectOf(m.GetForceHttps()); err != nil {
		return nil, err
	}
	if s.hsts, err = hstsOf(m); err != nil {
		return nil, err
	}
	if s.client, err = clientOf(m); err != nil {
		return nil, err
	}
	if s.client != nil {
		s.client.config = terminators.Of(c).configFor(s)
	}
	s.policy = policyOf(siteID, m)
	return s, nil
}

func referencesOf(m *configv1.SiteHttps) ([]reference, error) {
	refs := m.GetCertificates()
	if len(refs) == 0 || len(refs) > maxCertificates {
		return nil, errCertificates
	}
	list := make([]reference, len(refs))
	for i, ref := range refs {
		if len(ref.GetFingerprint()) != len(list[i].id) {
			return nil, fmt.Errorf("the fingerprint of certificate %q is not valid", ref.GetName())
		}
		list[i] = reference{fingerprint(ref.GetFingerprint()), ref.GetName()}
	}
	return list, nil
}

func redirectOf(m *configv1.HttpsRedirect) (*redirect, error) {
	if m == nil {
		return nil, nil
	}
	status, port := int(m.GetStatus()), m.GetPort()
	if !slices.Contains([]int{301, 302, 303, 307, 308}, status) || port == 0 || port > 65535 {
		return nil, errRedirect
	}
	return &redirect{status: status, port: portText(uint16(port)), excluded: domainsOf(m.GetExcluded())}, nil
}

func hstsOf(m *configv1.SiteHttps) ([]string, error) {
	age := m.GetHstsMaxAge()
	switch {
	case age > maxHSTSAge:
		return nil, errHSTS
	case age == 0:
		return nil, nil
	}
	value := "max-age=" + strconv.FormatUint(uint64(age), 10)
	if m.GetHstsIncludeSubdomains() {
		value += "; includeSubDomains"
	}
	if m.GetHstsPreload() {
		value += "; preload"
	}
	return []string{value}, nil
}

func clientOf(message *configv1.SiteHttps) (*clientCertificates, error) {
	m := message.GetClientCertificates()
	if m == nil {
		return nil, nil
	}
	client := &clientCertificates{forward: m.GetForwardHeaders(), authorities: x509.NewCertPool(), depth: int(m.GetDepth()), policy: checkedBy(m)}
	switch m.GetMode() {
	case configv1.ClientCertificateMode_CLIENT_CERTIFICATE_MODE_OPTIONAL:
	case required:
		client.required = true
	default:
		return nil, errClientMode
	}
	if n := len(m.GetAuthorities()); n == 0 || n > maxAuthorities {
		return nil, errAuthorities
	}
	for _, der := range m.GetAuthorities() {
		authority, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errAuthorities
		}
		client.authorities.AddCert(authority)
	}
	switch {
	case client.depth < 1 || client.depth > maxDepth:
		return nil, errDepth
	case message.GetHttp3():
		return nil, errClientHTTP3
	}
	return client, nil
}

// checkMaterial fails with the name of a certificate of which there is no material, or none that can be used.
func checkMaterial(c *core.Core, siteID string, m *configv1.SiteHttps) (*struct{}, error) {
	refs, err := referencesOf(m)
	if err != nil {
		return nil, err
	}
	t := terminators.Of(c)
	defer t.checked(siteID)
	for _, ref := range refs {
		if err := t.check(siteID, ref); err != nil {
			return nil, core.Later(fmt.Errorf("certificate %q: %w", ref.name, err))
		}
	}
	return nil, nil
}

const policyBytes = 16

// policyOf is what a session was made under: resuming one under another policy would get around it.
func policyOf(siteID string, m *configv1.SiteHttps) [policyBytes]byte {
	client := m.GetClientCertificates()
	checked := checkedBy(client)
	parts := [][]byte{[]byte(siteID), {byte(m.GetMinimumVersion()), byte(m.GetCipherProfile()), byte(client.GetMode())}, checked[:]}
	// Who came by a certificate that was replaced, say because its key got out, is shown the new one.
	for _, ref := range m.GetCertificates() {
		parts = append(parts, ref.GetFingerprint())
	}
	return digest(parts...)
}

// checkedBy is what client certificates are checked by, zeros where there are none.
func checkedBy(m *configv1.ClientCertificates) (policy [policyBytes]byte) {
	if m == nil {
		return policy
	}
	return digest(append([][]byte{{byte(m.GetDepth())}}, m.GetAuthorities()...)...)
}

func digest(parts ...[]byte) [policyBytes]byte {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		_, _ = h.Write(part)
	}
	return [policyBytes]byte(h.Sum(nil))
}

// domains are some of a site's.
type domains []core.Domain

func domainsOf(list []*configv1.Domain) domains {
	made := make(domains, len(list))
	for i, d := range list {
		made[i] = core.Domain{Form: d.GetForm(), Name: d.GetName()}
	}
	return made
}

// have reports whether it is one of these by which a site has a host.
func (d domains) have(p *exchange.Plan, host string) bool {
	if len(d) == 0 {
		return false
	}
	found, ok := core.DomainOf(p, host)
	return ok && slices.Contains(d, found)
}

var _ exchange.TLS = (*Terminator)(nil)
