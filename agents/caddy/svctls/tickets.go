package svctls

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

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/gen/svc/edge/v1/edgev1connect"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/svccore"
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
	// Of this process.
	own [ticketKeyBytes]byte

	mu   sync.Mutex
	held uint64
}

func newTickets() *tickets {
	k := &tickets{keys: &tls.Config{}}
	// Never fails.
	_, _ = rand.Read(k.own[:])
	k.keys.SetSessionTicketKeys([][ticketKeyBytes]byte{k.own})
	return k
}

func (k *tickets) version() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}

var errTicketKey = errors.New("a key of session tickets has not 32 bytes")

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
	// Sessions from before the keys came go on.
	all = append(all, k.own)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = keys.GetVersion()
	k.keys.SetSessionTicketKeys(all)
	return nil
}

func init() {
	svccore.RegisterCall(edgev1connect.EdgeServiceSetSessionTicketKeysProcedure, setSessionTicketKeys)
}

func setSessionTicketKeys(_ context.Context, c *svccore.Core, r *edgev1.SetSessionTicketKeysRequest) (*edgev1.SetSessionTicketKeysResponse, error) {
	if err := terminators.Of(c).tickets.set(r.GetKeys()); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return &edgev1.SetSessionTicketKeysResponse{}, nil
}

// policyMark begins what a ticket says of the policy under which its session was made.
var policyMark = []byte("svc1")

// wrap makes a ticket that says which policy its session was made under.
func (t *Terminator) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	s := t.siteOf(state)
	if s == nil {
		return nil, errNoSite
	}
	session.EarlyData = false
	session.Extra = append(session.Extra, append(bytes.Clone(policyMark), s.policy[:]...))
	return t.tickets.keys.EncryptTicket(state, session)
}

var errNoSite = errors.New("the site of the session is gone")

// unwrap reads a ticket. A session of another policy, or one that was agreed on too long ago, is not resumed: the
// handshake is a full one.
func (t *Terminator) unwrap(ticket []byte, state tls.ConnectionState) (*tls.SessionState, error) {
	session, err := t.tickets.keys.DecryptTicket(ticket, state)
	if err != nil || session == nil {
		return nil, nil
	}
	s := t.siteOf(state)
	if s == nil || !madeUnder(session, s.policy) || t.core.Now().Sub(agreedAt(session)) >= sessionLifetime {
		return nil, nil
	}
	session.EarlyData = false
	return session, nil
}

// siteOf is the site of a connection, which was looked up by the hello a moment ago.
func (t *Terminator) siteOf(state tls.ConnectionState) *site {
	host, named := serverName(state.ServerName)
	if !named {
		return nil
	}
	if plan := svccore.PlanOfHost(t.core.Tables(), host); plan != nil && !plan.Disabled {
		return siteHTTPS.Of(plan)
	}
	return nil
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
