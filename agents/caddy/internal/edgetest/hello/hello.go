// Package hello reads what TLS clients say first from the bytes that they sent, and makes of it the fingerprint JA4 as its
// publication describes it, step by step: what the edge makes of the same clients is compared with it.
package hello

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var errShort = errors.New("the hello ends early")

// cursor reads bytes one after the other; once one is missing it gives nothing more.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.rest) {
		c.bad = true
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// number reads an integer of so many bytes.
func (c *cursor) number(bytes int) (n int) {
	for _, b := range c.take(bytes) {
		n = n<<8 | int(b)
	}
	return n
}

// vector reads a list that begins with its length, of so many bytes.
func (c *cursor) vector(lengthBytes int) *cursor { return &cursor{rest: c.take(c.number(lengthBytes))} }

func (c *cursor) pairs() (values []uint16) {
	for len(c.rest) > 1 {
		values = append(values, uint16(c.number(2)))
	}
	return values
}

// Of returns the fingerprint of a hello, the handshake message with its header; quic says which transport it came over.
func Of(message []byte, quic bool) (string, error) {
	c := &cursor{rest: message}
	if c.number(1) != 1 {
		return "", errors.New("the message is no hello")
	}
	body := c.vector(3)
	versions := []uint16{uint16(body.number(2))}
	body.take(32)
	body.vector(1)
	ciphers := body.vector(2).pairs()
	body.vector(1)
	var extensions, algorithms []uint16
	protocol := ""
	if len(body.rest) > 0 {
		list := body.vector(2)
		for len(list.rest) > 0 && !list.bad {
			id := uint16(list.number(2))
			content := list.vector(2)
			extensions = append(extensions, id)
			switch id {
			case 0x000d:
				algorithms = content.vector(2).pairs()
			case 0x0010:
				protocol = string(content.vector(2).vector(1).rest)
			case 0x002b:
				versions = content.vector(1).pairs()
			}
		}
		body.bad = body.bad || list.bad
	}
	if c.bad || body.bad {
		return "", errShort
	}
	return fingerprint(quic, kept(versions), kept(ciphers), kept(extensions), kept(algorithms), protocol), nil
}

// kept leaves out the sixteen values of GREASE.
func kept(values []uint16) []string {
	var texts []string
	for _, v := range values {
		b := binary.BigEndian.AppendUint16(nil, v)
		if b[0] != b[1] || b[0]&0x0f != 0x0a {
			texts = append(texts, fmt.Sprintf("%04x", v))
		}
	}
	return texts
}

var versionNames = map[string]string{
	"0304": "13", "0303": "12", "0302": "11", "0301": "10", "0300": "s3", "0002": "s2", "feff": "d1", "fefd": "d2", "fefc": "d3",
}

func fingerprint(quic bool, versions, ciphers, extensions, algorithms []string, protocol string) string {
	transport, version, name, alpn := "t", "00", "i", "00"
	if quic {
		transport = "q"
	}
	if len(versions) > 0 {
		if known, ok := versionNames[slices.Max(versions)]; ok {
			version = known
		}
	}
	if slices.Contains(extensions, "0000") {
		name = "d"
	}
	if protocol != "" {
		alpn = protocol[:1] + protocol[len(protocol)-1:]
		if strings.Trim(alpn, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			digits := fmt.Sprintf("%x", protocol)
			alpn = digits[:1] + digits[len(digits)-1:]
		}
	}
	counts := fmt.Sprintf("%02d%02d", min(len(ciphers), 99), min(len(extensions), 99))
	slices.Sort(ciphers)
	rest := slices.DeleteFunc(extensions, func(id string) bool { return id == "0000" || id == "0010" })
	slices.Sort(rest)
	text := strings.Join(rest, ",")
	if text != "" && len(algorithms) > 0 {
		text += "_" + strings.Join(algorithms, ",")
	}
	return transport + version + name + counts + alpn + "_" + hash(strings.Join(ciphers, ",")) + "_" + hash(text)
}

func hash(text string) string {
	if text == "" {
		return "000000000000"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
}

// FromRecords puts the hello together from the records of a TLS connection; nil while it is not whole.
func FromRecords(sent []byte) []byte {
	var message []byte
	for c := (&cursor{rest: sent}); ; {
		kind := c.number(1)
		c.take(2)
		content := c.vector(2)
		if c.bad || content.bad || kind != 22 {
			return nil
		}
		if message = append(message, content.rest...); len(message) >= 4 {
			if n := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3]); len(message) >= n {
				return message[:n]
			}
		}
	}
}
