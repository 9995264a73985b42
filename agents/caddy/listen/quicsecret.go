package listen

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"path/filepath"

	"github.com/quic-go/quic-go"
)

// quicSecretFile is of the agent: 32 bytes that outlive the process, so that clients of a former one learn at once that
// their connections are no more.
const quicSecretFile = "quic.key"

// quicSecret is what the tokens of QUIC are made from.
type quicSecret [32]byte

// readQUICSecret reads the secret of a folder. Where there is none, one of this process serves.
func readQUICSecret(folder string) *quicSecret {
	s := new(quicSecret)
	content, err := os.ReadFile(filepath.Join(folder, quicSecretFile))
	if err == nil && len(content) == len(s) {
		copy(s[:], content)
		return s
	}
	// Never fails.
	_, _ = rand.Read(s[:])
	return s
}

func (s *quicSecret) derive(purpose string) (key [32]byte) {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte(purpose))
	copy(key[:], mac.Sum(nil))
	return key
}

func (s *quicSecret) reset() *quic.StatelessResetKey {
	key := quic.StatelessResetKey(s.derive("stateless reset"))
	return &key
}

func (s *quicSecret) token() *quic.TokenGeneratorKey {
	key := quic.TokenGeneratorKey(s.derive("address token"))
	return &key
}
