package exchange

import (
	"crypto/sha256"
	"encoding/binary"
)

// Difference stands for what an origin is asked for in place of what the client asked for: target, host, server name,
// group of origins and port. differs is false when nothing of it is another one. Answers are kept under what the client
// asked for; where rules send two such requests elsewhere, their answers must not meet.
func (x *Exchange) Difference() (sum [sha256.Size]byte, differs bool) {
	out := &x.Out
	target := ""
	if out.Target != nil && out.Target.Raw != x.In.Target.Raw {
		target = out.Target.Raw
	}
	if target == "" && out.Host == "" && out.HostHeader == "" && out.SNI == "" && out.Group == "" && out.Port == 0 {
		return sum, false
	}
	b := make([]byte, 0, 512)
	for _, text := range [...]string{target, out.Host, out.HostHeader, out.SNI, out.Group} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.BigEndian.AppendUint16(b, out.Port)
	return sha256.Sum256(b), true
}
