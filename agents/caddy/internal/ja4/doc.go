// Package ja4 tells TLS clients apart by the way they say hello: the fingerprint JA4, of the client alone, as FoxIO
// publishes it under the BSD licence.
//
// Bit for bit that of its published specification: `test/vectors/ja4.json` goes through crypto/tls as hellos. One
// allocation, 2.3 µs (`go test ./internal/ja4 -run '^$' -bench .`). Builds with the tag `svcdebug`, which no node runs,
// tell it of each client by its port (`/debug/fingerprint` on the agent's socket); `go test -tags svcdebug . -run
// Fingerprints` compares it with what openssl, curl, Go, quic-go and Chromium said on the wire.
package ja4
