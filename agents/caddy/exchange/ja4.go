package exchange

// JA4 is the fingerprint of the client; "" without TLS.
func (in *Inbound) JA4() string {
	if in.Handshake == nil {
		return ""
	}
	return in.Handshake.JA4
}
