package ja4

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// greeting is what a client says in its hello.
type greeting struct {
	Name       string   `json:"name"`
	QUIC       bool     `json:"quic"`
	Ciphers    string   `json:"ciphers"`
	Extensions string   `json:"extensions"`
	Algorithms string   `json:"algorithms"`
	ALPN       []string `json:"alpn"`
	Versions   string   `json:"versions"`
	Legacy     string   `json:"legacy"`
	JA4        string   `json:"ja4"`
}

func list(t testing.TB, text string) (values []uint16) {
	t.Helper()
	if text == "" {
		return nil
	}
	for _, item := range strings.Split(text, ",") {
		b, err := hex.DecodeString(item)
		if err != nil || len(b) != 2 {
			t.Fatalf("%q is no value", item)
		}
		values = append(values, binary.BigEndian.Uint16(b))
	}
	return values
}

func wire(values []uint16) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

func short(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

func long(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

// record is the hello as bytes of a TLS connection.
func (g *greeting) record(t testing.TB) []byte {
	t.Helper()
	legacy := uint16(tls.VersionTLS12)
	if g.Legacy != "" {
		legacy = list(t, g.Legacy)[0]
	}
	hello := binary.BigEndian.AppendUint16(nil, legacy)
	hello = append(hello, make([]byte, 32)...)
	hello = append(hello, short(nil)...)
	hello = append(hello, long(wire(list(t, g.Ciphers)))...)
	hello = append(hello, short([]byte{0})...)
	var extensions []byte
	for _, id := range list(t, g.Extensions) {
		extensions = binary.BigEndian.AppendUint16(extensions, id)
		extensions = append(extensions, long(g.extension(t, id))...)
	}
	if extensions != nil {
		hello = append(hello, long(extensions)...)
	}
	message := append([]byte{1, 0}, long(hello)...)
	return append([]byte{22, 3, 1}, long(message)...)
}

// extension is a content that a server can read.
func (g *greeting) extension(t testing.TB, id uint16) []byte {
	switch id {
	case extServerName:
		return long(append([]byte{0}, long([]byte("www.example.com"))...))
	case extALPN:
		var all []byte
		for _, name := range g.ALPN {
			b, err := hex.DecodeString(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, short(b)...)
		}
		return long(all)
	case 0x0005:
		return []byte{1, 0, 0, 0, 0}
	case 0x000a:
		return long(wire([]uint16{0x4a4a, 29, 23}))
	case 0x000b, 0x002d:
		return short([]byte{0})
	case 0x000d:
		if g.Algorithms == "" {
			// An empty list is refused; one without a value that counts is not.
			return long(wire([]uint16{0x6a6a}))
		}
		return long(wire(list(t, g.Algorithms)))
	case 0x0029:
		identity := append(long([]byte("ticket")), 0, 0, 0, 0)
		return append(long(identity), long(short(make([]byte, 32)))...)
	case 0x002b:
		return short(wire(list(t, g.Versions)))
	case 0x0033:
		return long(append(wire([]uint16{29}), long(slices.Repeat([]byte{9}, 32))...))
	case 0xff01:
		return short(nil)
	}
	return nil
}

var errSeen = errors.New("seen")

// said is what crypto/tls makes of the hello.
func (g *greeting) said(t testing.TB) *tls.ClientHelloInfo {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go func() {
		// What the server answers is of no interest.
		_, _ = client.Write(g.record(t))
		_, _ = client.Read(make([]byte, 64))
	}()
	var seen *tls.ClientHelloInfo
	err := tls.Server(server, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		seen = hello
		return nil, errSeen
	}}).Handshake()
	if seen == nil {
		t.Fatalf("the hello was not read: %v", err)
	}
	return seen
}
