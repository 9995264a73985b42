package handshake

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"connectrpc.com/connect"

	"edge.svc/caddy/core"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

const (
	ticketKeyBytes = 32
	// Sessions are resumed for so long after they were agreed on.
	sessionLifetime = 24 * time.Hour
)

// tickets are the keys by which sessions are resumed. Those of the cluster are every node's; without them sessions are
// resumed by this process alone.
type tickets struct {
	// Holds the keys and nothing else: crypto/tls encrypts with the first of them and decrypts with all.
	keys *tls.Config
	now  func() time.Time

	mu      sync.Mutex
	held    uint64
	cluster [][ticketKeyBytes]byte
	// Of this process; nil once all sessions of before the cluster's keys came are over.
	own *[ticketKeyBytes]byte
	// Since when the cluster has keys.
	since time.Time
}

func newTickets(now func() time.Time) *tickets {
	k := &tickets{keys: &tls.Config{}, now: now}
	k.use()
	return k
}

// use puts to use what there is.
func (k *tickets) use() {
	if len(k.cluster) == 0 && k.own == nil {
		k.own = new([ticketKeyBytes]byte)
		// Never fails.
		_, _ = rand.Read(k.own[:])
	}
	all := k.cluster
	if k.own != nil {
		all = append(all[:len(all):len(all)], *k.own)
	}
	k.keys.SetSessionTicketKeys(all)
}

func (k *tickets) version() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}

var errTicketKey = errors.New("a session ticket key must have 32 bytes")

// set puts the keys of the cluster to use. Version 0 takes them away.
func (k *tickets) set(keys *nodev1.SessionTicketKeys) error {
	var all [][ticketKeyBytes]byte
	if keys.GetVersion() > 0 {
		for i, key := range [][]byte{keys.GetCurrent(), keys.GetNext(), keys.GetPrevious()} {
			switch {
			case len(key) == ticketKeyBytes:
				all = append(all, [ticketKeyBytes]byte(key))
			case len(key) != 0 || i == 0:
				return errTicketKey
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(all) == 0:
		k.since = time.Time{}
	case len(k.cluster) == 0:
		// Sessions from before the keys came go on.
		k.since = k.now()
	}
	k.held, k.cluster = keys.GetVersion(), all
	k.use()
	return nil
}

// forget drops the key of the process once no session is left that was made by it: what was recorded of one could be read
// with it.
func (k *tickets) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own != nil && !k.since.IsZero() && k.now().Sub(k.since) >= sessionLifetime {
		k.own = nil
		k.use()
	}
}

func init() {
	core.RegisterCall(edgev1connect.EdgeServiceSetSessionTicketKeysProcedure, setSessionTicketKeys)
}

func setSessionTicketKeys(_ context.Context, c *core.Core, r *edgev1.SetSessionTicketKeysRequest) (*edgev1.SetSessionTicketKeysResponse, error) {
	if err := terminators.Of(c).tickets.set(r.GetKeys()); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return &edgev1.SetSessionTicketKeysResponse{}, nil
}

// policyMark begins what a ticket says of the policy under which its session was made.
var policyMark = []byte("svc1")

// wrap makes a ticket that says which policy its session was made under.
func (m *meant) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	session.EarlyData = false
	session.Extra = append(session.Extra, append(policyMark[:len(policyMark):len(policyMark)], m.site.policy[:]...))
	return m.tickets.keys.EncryptTicket(state, session)
}

// unwrap reads a ticket. A session of another policy, or one that was agreed on too long ago, is not resumed: the
// handshake is a full one.
func (m *meant) unwrap(ticket []byte, state tls.ConnectionState) (*tls.SessionState, error) {
	session, err := m.tickets.keys.DecryptTicket(ticket, state)
	if err != nil || session == nil {
		return nil, nil
	}
	if !madeUnder(session, m.site.policy) || m.core.Now().Sub(agreedAt(session)) >= sessionLifetime {
		return nil, nil
	}
	session.EarlyData = false
	return session, nil
}

func madeUnder(session *tls.SessionState, policy [policyBytes]byte) bool {
	for _, extra := range session.Extra {
		if found, ok := bytes.CutPrefix(extra, policyMark); ok {
			return bytes.Equal(found, policy[:])
		}
	}
	return false
}

// agreedAt is when the secret of a session was agreed on, which for TLS 1.2 may be before the ticket was made. It stands
// in the encoded session after its version, type and cipher; where the encoding is another one nothing is resumed.
func agreedAt(session *tls.SessionState) time.Time {
	const at, length = 5, 8
	encoded, err := session.Bytes()
	if err != nil || len(encoded) < at+length {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(encoded[at:])), 0)
}
