// Package handshake decides the handshakes of TLS: which site a client means, whether it is served where the client came, by
// which certificate and under which configuration. It reads certificates from the pack that the agent keeps; none of
// them is in memory before a handshake needs it.
//
// A hello is decided without a lock and without parsing anything but the certificate that is given. Of certificates
// nobody asks for the node holds where the agent's pack has them, at most 256 bytes each; parsed ones are bounded to 64
// MiB. A compacted pack is looked through beside the one that serves. An entry of which a certificate is missing or
// cannot be used fails by its name and is tried again when the pack was read (`core.Later`, `Retry`); the version
// before goes on. A session is resumed under the policy of its site that it was made under and while the site has the
// same certificates, within 24 hours, and never where the hello is refused. Nothing is encrypted before a name is known
// to be served: a refusal is one alert.
package handshake
