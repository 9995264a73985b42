package purgemethod

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"edge.svc/caddy/core"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	// Method is what clients send.
	Method = "PURGE"

	kind        = "site-purge-method"
	keyHeader   = "X-Purge-Key"
	maxKeyBytes = 256
)

func init() {
	core.ConfigureKind(kind, core.KindOptions{Features: []string{"purge-method-v1"}, MaxBody: 1 << 10})
}

// settings are those of a site that takes PURGE requests.
type settings struct {
	siteID string
	digest []byte
}

var errDigest = errors.New("a key digest has 32 bytes")

var part = core.PartOf(kind, "PURGE", func(_ *core.Core, siteID string, m *configv1.SitePurgeMethod) (*settings, error) {
	if len(m.GetKeyDigest()) != sha256.Size {
		return nil, errDigest
	}
	return &settings{siteID, m.GetKeyDigest()}, nil
})

// isKey reports whether a request has the one key of the site. It takes the same time for every key of a length.
func (s *settings) isKey(secret []byte, sent []string) bool {
	if len(sent) != 1 || len(sent[0]) > maxKeyBytes {
		return false
	}
	digest := hmac.New(sha256.New, secret)
	_, _ = digest.Write([]byte(s.siteID + "\n" + sent[0]))
	return hmac.Equal(digest.Sum(nil), s.digest)
}
