package listen

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// ticketed tells of the tickets of sessions that a client gets.
type ticketed struct {
	tls.ClientSessionCache
	got chan struct{}
}

func (c ticketed) Put(name string, session *tls.ClientSessionState) {
	c.ClientSessionCache.Put(name, session)
	select {
	case c.got <- struct{}{}:
	default:
	}
}

// Early data can be sent again by anybody who saw it: a client that comes back sends none, and asks once.
func TestEarlyDataIsNotTaken(t *testing.T) {
	var asked atomic.Int64
	e := serveQUIC(t, Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		asked.Add(1)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	sessions := ticketed{tls.NewLRUClientSessionCache(1), make(chan struct{}, 1)}
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "a.com", NextProtos: []string{http3.NextProtoH3}, ClientSessionCache: sessions}
	for turn := range 2 {
		conn, err := quic.DialAddrEarly(ctx, e.port.socket.LocalAddr().String(), config, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.CloseWithError(0, "") }()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(http3.Transport).NewClientConn(conn).RoundTrip(request); err != nil {
			t.Fatal(err)
		}
		<-sessions.got
		if state := conn.ConnectionState(); state.Used0RTT || state.TLS.DidResume != (turn == 1) {
			t.Errorf("connection %d: %+v", turn, state)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// Extended CONNECT is not offered, so browsers open a connection of HTTP/1.1 for a WebSocket.
func TestNoTunnelIsOfferedOverHTTP3(t *testing.T) {
	e := serveQUIC(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
	client := new(http3.Transport).NewClientConn(dialQUIC(t, e, []string{http3.NextProtoH3}))
	select {
	case <-client.ReceivedSettings():
	case <-time.After(60 * time.Second):
		t.Fatal("no settings come")
	}
	if offered := client.Settings(); offered.EnableExtendedConnect || offered.EnableDatagrams || len(offered.Other) > 0 {
		t.Errorf("%+v", offered)
	}
	// Who asks all the same is told at once, although what a tunnel carries never ends.
	conn := dialQUIC(t, e, []string{http3.NextProtoH3})
	one(conn, h3Control, h3Frame(h3Settings, nil))
	stream, err := conn.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.SetDeadline(time.Now().Add(60 * time.Second))
	_, _ = stream.Write(h3Frame(h3Headers, h3HeadOf(t, http.MethodConnect, "/", qpack.HeaderField{Name: ":protocol", Value: "websocket"})))
	if status := h3Status(t, stream); status != "405" {
		t.Errorf("%q", status)
	}
}

// A panic that nobody else caught is in the log of the node; what else quic-go tells is not.
func TestErrorsOfQUICAreLogged(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	log := quicLog(zap.New(core))
	log.Debug("handling request")
	log.Warn("a client did something")
	log.Error("http3: panic serving", "arg", "why")
	if all := logs.All(); len(all) != 1 || all[0].Message != "http3: panic serving" || all[0].ContextMap()["arg"] != "why" {
		t.Errorf("%v", all)
	}
}
