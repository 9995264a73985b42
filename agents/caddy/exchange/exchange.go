package exchange

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http"
	"net/netip"
	"time"
)

// Exchange is one request with its answer. It is pooled: nothing of it may be kept after Reset.
type Exchange struct {
	// In is what was asked. It is complete once the first stages are over, up to the one of paths, and never changes after.
	In Inbound
	// Out is what an origin gets, where that differs from In.
	Out Outbound
	// Overrides is what rules put in the place of settings.
	Overrides Overrides
	// Plan is the site's, nil before the site is known.
	Plan *Plan
	// Tables is the configuration of this moment, loaded once.
	Tables *Tables
	// Body is the body of the request, with its one owner.
	Body Body
	// Local says that the node itself asks, over its own listener.
	Local bool
	// Spoiled says that a stage panicked: what it left going on may still know the exchange, which nobody uses again.
	Spoiled bool
	// Registered takes the exchange out of what bans look at; nil where nobody looks.
	Registered interface{ Leave() }
	// Writes bounds the next writes to the client; nil where the server does it.
	Writes WriteBound
	// Memory counts what the exchange holds against the budget of requests in progress; nil where nobody counts.
	Memory Memory
	// Meter counts what the connection carries; nil where nobody counts.
	Meter *Meter
	// Begun is when the head of the request was whole.
	Begun time.Time

	// Pays for the bytes where there is no meter; nil while nobody does.
	account *Account
	// Bytes of the response body that were written.
	bodySent int64
	ctx      context.Context
	writer   http.ResponseWriter
	answer   Answer
	sink     clientSink
	deferred Stage
	page     []byte
	facts    []fact
	known    []int
	marks    []Count
	// See traffic.go.
	statusSent  int
	interimSent int64
	tunnelled   tunnelTraffic
	row         uint64
	draw        uint32
}

// Inbound is the request as the client sent it, read once.
type Inbound struct {
	Method, Proto string
	// Scheme is how the client came, "https" also where a trusted proxy ended its TLS. Redirects to HTTPS, HSTS, cookies,
	// rules and origins go by it; what needs the TLS of this connection goes by TLS.
	Scheme string
	// Major and Minor are of the protocol.
	Major, Minor int
	// Host is normalised; HostRaw is for the origin.
	Host, HostRaw string
	Target        Target
	// Header is without internal and ambiguous names.
	Header, Trailer http.Header
	// Remote is the other end of the connection as the server names it.
	Remote string
	// Client is who asks, Peer the other end of the connection, Proxied whom a PROXY header named.
	Client, Peer, Proxied netip.Addr
	// Claimed says that nobody who is known vouches for the client's address: it counts for bans, limits and logs, and
	// never for an exemption.
	Claimed bool
	// Port is the one the request came to, 0 where there is none.
	Port uint16
	// NamedPort is Port as configuration names it: 80 and 443 for the node's usual ones, whatever their numbers; 0 where
	// sites are bound to none.
	NamedPort uint16
	// TLS is nil without.
	TLS *tls.ConnectionState
	// Handshake is what the handshake of the connection decided; nil without one, or where nobody decides.
	Handshake *Handshake
	// HideForwardedFor says that origins are not told what the client said in X-Forwarded-For.
	HideForwardedFor bool
	// Upgrade says that the request is a complete WebSocket handshake. Every other wish for another protocol is ignored.
	Upgrade bool
	// ID is the request's, also the client's own where it is well-formed; IDHeader is the same as the value of a header.
	ID       string
	IDHeader []string
}

// Secure reports whether the client came over HTTPS.
func (in *Inbound) Secure() bool { return in.Scheme == "https" }

// Memory counts the memory of an exchange.
type Memory interface {
	// Take counts more bytes, and reports whether the exchange may hold them.
	Take(bytes int64) bool
	// TakeSpare is Take for what the exchange can do without: half of each limit stays for others.
	TakeSpare(bytes int64) bool
	// Give ends the counting of bytes that were taken.
	Give(bytes int64)
	// Leave ends the counting of the exchange.
	Leave()
}

// WriteBound limits the writes that follow to the time in which something must go on.
type WriteBound interface {
	BoundWrites()
	// Lasts lets so much time pass between two writes, where less was allowed.
	Lasts(idle time.Duration)
	// Gather has the answer that is written next, with a body of so many bytes, leave in one piece.
	Gather(bodyBytes int)
	// TakesFiles reports whether the system sends files to the client by itself.
	TakesFiles() bool
	// HoldHead has the head of a response, which is flushed next, wait for the file that comes behind it.
	HoldHead()
	// ReleaseHead ends that. A head that no file came behind leaves.
	ReleaseHead()
	// MayWait hears of a response that was handed to the server, with so many bytes of its body. It reports whether the client
	// may leave the last of them waiting.
	MayWait(bodyBytes int64) bool
}

// Stage decides about an exchange: an answer ends the way, nil goes on. It never writes.
type Stage func(*Exchange) *Answer

// ResponseStage changes an answer before it leaves.
type ResponseStage func(*Exchange, *Answer)

// FinishStage hears of the end of an exchange, exactly once. It only notes.
type FinishStage func(*Exchange)

// Begin starts an exchange with what its server has read.
func (x *Exchange) Begin(w http.ResponseWriter, r *http.Request) { x.BeginAt(w, r, time.Now()) }

// BeginAt is Begin for who has read the clock.
func (x *Exchange) BeginAt(w http.ResponseWriter, r *http.Request, now time.Time) {
	x.writer, x.ctx, x.Begun = w, r.Context(), now
	x.In.Method, x.In.Proto, x.In.Major, x.In.Minor = r.Method, r.Proto, r.ProtoMajor, r.ProtoMinor
	x.In.HostRaw, x.In.Header, x.In.Trailer, x.In.TLS = r.Host, r.Header, maps.Clone(r.Trailer), r.TLS
	x.In.Remote = r.RemoteAddr
	x.In.Scheme = "http"
	if r.TLS != nil {
		x.In.Scheme = "https"
	}
	x.In.Target = readTarget(r)
	x.In.Upgrade = isWebSocket(r)
	x.Body.begin(x, r)
}

// Reset ends an exchange and makes it ready for another.
func (x *Exchange) Reset() {
	x.answer.closeBody()
	x.Body.forget()
	x.forgetFacts()
	facts, known, marks, page := x.facts, x.known, x.marks, x.page
	if cap(page) > maxKeptPage {
		page = nil
	}
	*x = Exchange{facts: facts, known: known, marks: marks[:0], page: page[:0]}
}

// maxKeptPage is the largest page whose room a pooled exchange keeps.
const maxKeptPage = 32 << 10

// Context is done when the client is gone or the exchange was ended.
func (x *Exchange) Context() context.Context { return x.ctx }

// SetContext narrows the context, before the first stage.
func (x *Exchange) SetContext(ctx context.Context) { x.ctx = ctx }

// Writer is the way back to the client, for the one who sends answers and for limits of its connection.
func (x *Exchange) Writer() http.ResponseWriter { return x.writer }

// Page is room for an answer that the edge makes: append to it and give the result to SetBytes.
func (x *Exchange) Page() []byte { return x.page[:0] }

// SetBytes makes what was appended to Page the body of an answer. The room is another exchange's after Reset.
func (x *Exchange) SetBytes(a *Answer, page []byte) { x.page, a.Bytes = page, page }

// Defer keeps a response until later stages have seen the exchange. The first deferred response wins.
func (x *Exchange) Defer(make Stage) {
	if x.deferred == nil {
		x.deferred = make
	}
}

// HasDeferred reports whether a response is deferred.
func (x *Exchange) HasDeferred() bool { return x.deferred != nil }

// Deferred returns the deferred response, nil when there is none.
func (x *Exchange) Deferred() *Answer {
	if x.deferred == nil {
		return nil
	}
	return x.deferred(x)
}

// Leave takes the exchange out of what bans look at: its own answer is not ended by the ban that it says.
func (x *Exchange) Leave() {
	if x.Registered != nil {
		x.Registered.Leave()
	}
}

// boundWrites renews the limit on writes.
func (x *Exchange) boundWrites() {
	if x.Writes != nil {
		x.Writes.BoundWrites()
	}
}
