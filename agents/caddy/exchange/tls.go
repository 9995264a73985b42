package exchange

import (
	"crypto/tls"
	"net"
)

// Handshake is what the handshake of a connection decided; the requests of the connection share it. Nothing of it changes
// once the handshake is over.
type Handshake struct {
	// ServerName is the name that the client asked for, normalised; "" without one.
	ServerName string
	// SiteID is the site of that name when the handshake was made, "" where the node's own certificate was given.
	SiteID string
	// Health says that the node's own certificate was given: only checks of its health are answered.
	Health bool
	// ClientPolicy is what the site checked client certificates by, zeros where it asked for none.
	ClientPolicy [16]byte
	// JA4 is the fingerprint of the client; "" where it is not known.
	JA4 string
}

// HandshakeConn is the connection below TLS, as the one who decides handshakes sees it in tls.ClientHelloInfo.Conn.
type HandshakeConn interface {
	net.Conn
	// Port is the one that was connected to as configuration names it: 443 for the node's usual one, whatever its number.
	Port() uint16
	// SetHandshake is called while the hello is looked at.
	SetHandshake(h *Handshake)
}

// TLS decides the handshakes of all connections. It is a component that listen finds.
type TLS interface {
	// ServerConfig has a GetConfigForClient that decides by the hello; its Conn is a HandshakeConn. The ports of HTTP/3 take
	// it as well.
	ServerConfig() *tls.Config
	// Failed counts a handshake that failed, by the reason.
	Failed(err error)
}
