package hello

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Initial reads the hello of a QUIC connection, version 1, from the packets of its client. The keys of its first packets
// follow from the connection id that the client chose (RFC 9001, 5.2): anybody on the way can read them.
type Initial struct {
	packets cipher.AEAD
	header  cipher.Block
	iv      []byte
	// Pieces of the handshake by where they begin.
	pieces map[int][]byte
}

var salt, _ = hex.DecodeString("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")

func expand(secret []byte, label string, length int) []byte {
	name := "tls13 " + label
	info := append([]byte{0, byte(length), byte(len(name))}, name...)
	key, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), length)
	if err != nil {
		panic(err)
	}
	return key
}

func (i *Initial) begin(connectionID []byte) error {
	secret, err := hkdf.Extract(sha256.New, connectionID, salt)
	if err != nil {
		return err
	}
	client := expand(secret, "client in", 32)
	block, err := aes.NewCipher(expand(client, "quic key", 16))
	if err != nil {
		return err
	}
	if i.packets, err = cipher.NewGCM(block); err != nil {
		return err
	}
	i.iv, i.pieces = expand(client, "quic iv", 12), map[int][]byte{}
	i.header, err = aes.NewCipher(expand(client, "quic hp", 16))
	return err
}

// variable reads an integer of variable length.
func (c *cursor) variable() int {
	if c.bad || len(c.rest) == 0 {
		c.bad = true
		return 0
	}
	length := 1 << (c.rest[0] >> 6)
	return c.number(length) & (1<<(8*length-2) - 1)
}

// Add looks at a datagram of the client, and returns the hello once it is whole.
func (i *Initial) Add(datagram []byte) ([]byte, error) {
	for len(datagram) > 0 && datagram[0]&0xf0 == 0xc0 {
		packet := append([]byte(nil), datagram...)
		c := &cursor{rest: packet}
		c.take(5)
		connectionID := c.vector(1).rest
		c.vector(1)
		c.take(c.variable())
		length := c.variable()
		start := len(packet) - len(c.rest)
		if c.bad || length < 20 || length > len(c.rest) {
			return nil, errShort
		}
		if i.packets == nil {
			if err := i.begin(connectionID); err != nil {
				return nil, err
			}
		}
		datagram = datagram[start+length:]
		if err := i.open(packet[:start+length], start); err != nil {
			return nil, err
		}
	}
	return i.message(), nil
}

// open takes the protection off a packet whose number begins at start, and keeps what it carries of the handshake.
func (i *Initial) open(packet []byte, start int) error {
	var mask [16]byte
	i.header.Encrypt(mask[:], packet[start+4:start+20])
	packet[0] ^= mask[0] & 0x0f
	bytes := int(packet[0]&3) + 1
	nonce := append([]byte(nil), i.iv...)
	for at := range bytes {
		packet[start+at] ^= mask[1+at]
		nonce[len(nonce)-bytes+at] ^= packet[start+at]
	}
	frames, err := i.packets.Open(nil, nonce, packet[start+bytes:], packet[:start+bytes])
	if err != nil {
		return err
	}
	for c := (&cursor{rest: frames}); len(c.rest) > 0; {
		switch c.variable() {
		case 0, 1: // PADDING and PING
		case 2: // ACK
			c.variable()
			c.variable()
			ranges := c.variable()
			c.variable()
			for range ranges {
				c.variable()
				c.variable()
			}
		case 6: // CRYPTO
			at := c.variable()
			i.pieces[at] = c.take(c.variable())
		default: // What ends a connection.
			return nil
		}
		if c.bad {
			return errors.New("a frame ends early")
		}
	}
	return nil
}

// message puts the pieces together; nil while some are missing.
func (i *Initial) message() []byte {
	var message []byte
	for grown := true; grown; {
		grown = false
		for at, piece := range i.pieces {
			if at <= len(message) && at+len(piece) > len(message) {
				message, grown = append(message[:at], piece...), true
			}
		}
	}
	if len(message) < 4 || len(message) < 4+int(message[1])<<16+int(message[2])<<8+int(message[3]) {
		return nil
	}
	return message
}
