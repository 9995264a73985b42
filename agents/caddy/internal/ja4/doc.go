// Package ja4 computes JA4, the fingerprint of a TLS client that FoxIO publishes under the BSD licence, from its
// ClientHello.
//
// The results are those of the published specification: a test sends each vector of test/vectors/ja4.json through
// crypto/tls. A fingerprint takes one allocation and 2.3 µs (go test ./internal/ja4 -run '^$' -bench .).
//
// A build with the tag svcdebug, which no node runs, reports the fingerprint of a client by its port
// (/debug/fingerprint on the agent's socket). go test -tags svcdebug ./program -run Fingerprints compares it with the
// bytes that openssl, curl, Go, quic-go and Chromium sent.
package ja4
