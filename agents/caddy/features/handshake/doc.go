// Package handshake decides about TLS handshakes: the site that a client means, whether that site is served on the port,
// and the certificate and TLS settings to use.
//
// Cost: a ClientHello is decided without a lock, and only the chosen certificate is parsed. The node keeps at most 256
// bytes in memory for each certificate that no client asks for: its place in the pack that the agent writes. Parsed
// certificates take at most 64 MiB. A compacted pack is indexed while the former one serves.
//
// Errors: an entry whose certificate is missing or unusable fails, with the name of the certificate. It is tried again
// after the pack was read (core.Later, Retry). Its previous version serves meanwhile.
//
// Sessions: a session is resumed within 24 hours, and only while its site has the same TLS settings and certificates as
// when the session began. A refused client gets one alert, and nothing is encrypted before the site is known.
package handshake
