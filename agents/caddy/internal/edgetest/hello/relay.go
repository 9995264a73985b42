package hello

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Seen is a client as it passed a relay.
type Seen struct {
	// JA4 is what its hello makes.
	JA4 string
	// Port is the one that it came to the edge from.
	Port uint16
}

// Relay passes the connections of clients on to an edge, over TCP and over QUIC, and tells their fingerprints.
type Relay struct {
	// Address is where clients come, by either transport.
	Address string
	mu      sync.Mutex
	seen    []Seen
}

// NewRelay starts a relay before an address.
func NewRelay(t *testing.T, edge string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Address: listener.Addr().String()}
	socket, err := net.ListenPacket("udp", r.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		socket.Close()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.connection(t, client, edge)
		}
	}()
	go r.datagrams(t, socket, edge)
	return r
}

// Take returns whose hello passed since it was asked last. A hello counts before the edge gets it.
func (r *Relay) Take() []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

func (r *Relay) told(t *testing.T, message []byte, quic bool, local net.Addr) {
	ja4, err := Of(message, quic)
	if err != nil {
		t.Errorf("a hello of a client: %v", err)
	}
	port := 0
	switch a := local.(type) {
	case *net.TCPAddr:
		port = a.Port
	case *net.UDPAddr:
		port = a.Port
	}
	r.mu.Lock()
	r.seen = append(r.seen, Seen{ja4, uint16(port)})
	r.mu.Unlock()
}

func (r *Relay) connection(t *testing.T, client net.Conn, edge string) {
	defer client.Close()
	server, err := net.Dial("tcp", edge)
	if err != nil {
		t.Error(err)
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	var sent []byte
	for buffer, known := make([]byte, 16<<10), false; ; {
		n, err := client.Read(buffer)
		if !known {
			sent = append(sent, buffer[:n]...)
			if message := FromRecords(sent); message != nil {
				known = true
				r.told(t, message, false, server.LocalAddr())
			}
		}
		if _, failed := server.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// datagrams gives each client a socket of its own towards the edge.
func (r *Relay) datagrams(t *testing.T, socket net.PacketConn, edge string) {
	type way struct {
		net.Conn
		initial Initial
		known   bool
	}
	ways := map[string]*way{}
	var done sync.WaitGroup
	defer done.Wait()
	for buffer := make([]byte, 64<<10); ; {
		n, client, err := socket.ReadFrom(buffer)
		if err != nil {
			for _, w := range ways {
				w.Close()
			}
			return
		}
		w := ways[client.String()]
		if w == nil {
			conn, err := net.Dial("udp", edge)
			if err != nil {
				t.Error(err)
				return
			}
			w = &way{Conn: conn}
			ways[client.String()] = w
			done.Go(func() {
				back := make([]byte, 64<<10)
				for {
					n, err := conn.Read(back)
					if err != nil {
						return
					}
					_, _ = socket.WriteTo(back[:n], client)
				}
			})
		}
		if !w.known {
			message, err := w.initial.Add(buffer[:n])
			if err != nil {
				t.Errorf("the first packets of a client: %v", err)
				w.known = true
			}
			if message != nil {
				w.known = true
				r.told(t, message, true, w.LocalAddr())
			}
		}
		_, _ = w.Write(buffer[:n])
	}
}
