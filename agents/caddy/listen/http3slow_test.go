package listen

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// A client that was served begins heads that say how long they are and stop. Each ends in its time, alone: what else the
// connection carries goes on. Whoever has many of them is sent away.
func TestSlowHeadsOfHTTP3End(t *testing.T) {
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	// The port waits for its handlers.
	defer free()
	e := serveQUIC(t, Limits{HeaderTime: 2 * time.Second}, func(_ http.ResponseWriter, r *http.Request) {
		FromContext(r.Context())
		if r.URL.Path == "/held" {
			<-release
		}
	})
	conn := dialQUIC(t, e, []string{http3.NextProtoH3})
	one(conn, h3Control, h3Frame(h3Settings, nil))
	begin := func(content []byte) *quic.Stream {
		t.Helper()
		stream, err := conn.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := stream.Write(content); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	whole := func() *quic.Stream {
		stream := begin(h3Frame(h3Headers, h3Head(t, "/held")))
		_ = stream.Close()
		return stream
	}
	slow := append(quicvarint.Append(quicvarint.Append(nil, h3Headers), maxHeaderBlock), "abc"...)
	held, first := whole(), int(slowHeads.burst)
	for range first {
		stream := begin(slow)
		defer func() {
			var ended *quic.StreamError
			if _, err := io.ReadAll(stream); !errors.As(err, &ended) || !ended.Remote || http3.ErrCode(ended.ErrorCode) != http3.ErrCodeRequestIncomplete {
				t.Errorf("a head that does not go on: %v", err)
			}
		}()
	}
	until(t, "slow heads count", func() bool { return e.registry.Counters().HTTP3Errors[slowHead] == uint64(first) })
	// The request before them has taken longer than any head may.
	free()
	for _, stream := range []*quic.Stream{held, whole()} {
		if status := h3Status(t, stream); status != "200" {
			t.Errorf("a request of the same connection: %q", status)
		}
	}
	for range maxQUICRequests - first - 2 {
		// The connection may end before the last of them.
		if stream, err := conn.OpenStream(); err == nil {
			_, _ = stream.Write(slow)
		}
	}
	select {
	case <-conn.Context().Done():
	case <-time.After(60 * time.Second):
		t.Fatal("the connection goes on")
	}
	until(t, "it counts", func() bool {
		now := e.registry.Counters()
		return now.HTTP3Errors["conn_"+http3.ErrCodeExcessiveLoad.String()] == 1 && now.Open == 0
	})
	visitor, _ := e.visitor(t, "a.com")
	if response, err := visitor.Get(e.url()); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("another client: %v %v", response, err)
	}
}

// Clients send ahead what all of them together may, and who may not send more is read all the same.
func TestWhatClientsOfQUICSendAheadIsBounded(t *testing.T) {
	const body = 4 * connectionWindow
	for _, limits := range []Limits{{Ahead: 1}, {}} {
		e := serveQUIC(t, limits, func(w http.ResponseWriter, r *http.Request) {
			FromContext(r.Context())
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
		})
		visitor, _ := e.visitor(t, "a.com")
		response, err := visitor.Post(e.url(), "", bytes.NewReader(make([]byte, body)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != fmt.Sprint(body) {
			t.Errorf("%q %v", got, err)
		}
	}
	var l limiter
	l.set(Limits{Ahead: 10})
	one, other := new(Conn), new(Conn)
	for _, c := range []*Conn{one, other} {
		l.enter(c, netip.Addr{}, time.Now())
	}
	if !l.widen(one, 6) || l.widen(other, 5) || !l.widen(other, 4) || l.widen(one, 1) {
		t.Error("not ten in all")
	}
	l.leave(one)
	if l.widen(one, 1) || !l.widen(other, 6) || l.widen(other, 1) {
		t.Error("not what the other left")
	}
}

// The function of quic-go that is called without its leave takes what it is given here, in this order: no compiler looks.
func TestTheConnectionOfQuicGoIsMadeAsBefore(t *testing.T) {
	theirs, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/quic-go/quic-go/http3").Output()
	if err != nil {
		t.Fatal(err)
	}
	const same = "*quic.Conn, bool, time.Duration, qlogwriter.Recorder, *slog.Logger, context.Context, http.Handler, int -> "
	if got := signatureOf(t, filepath.Join(strings.TrimSpace(string(theirs)), "server_conn.go"), "newRawServerConn"); got != same+"*RawServerConn" {
		t.Errorf("quic-go has %s", got)
	}
	if got := signatureOf(t, "http3conn.go", "newServerConn"); got != same+"*http3.RawServerConn" {
		t.Errorf("here it is %s", got)
	}
}

// signatureOf is the types of what a function takes, and of what it returns.
func signatureOf(t *testing.T, file, name string) string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	types := func(fields *ast.FieldList) string {
		var all []string
		for _, field := range fields.List {
			var text strings.Builder
			if err := printer.Fprint(&text, files, field.Type); err != nil {
				t.Fatal(err)
			}
			for range max(len(field.Names), 1) {
				all = append(all, text.String())
			}
		}
		return strings.Join(all, ", ")
	}
	for _, declared := range parsed.Decls {
		if function, is := declared.(*ast.FuncDecl); is && function.Recv == nil && function.Name.Name == name {
			return types(function.Type.Params) + " -> " + types(function.Type.Results)
		}
	}
	return "nothing of the name"
}
