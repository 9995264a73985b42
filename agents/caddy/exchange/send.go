package exchange

import (
	"net/http"
	"strconv"
)

// Send writes an answer to the client; only SendInterim writes before it. ok is false when the answer did
// not arrive whole: the connection, or the stream, must then end, so that nobody takes a part for the whole.
func (x *Exchange) Send(a *Answer) (ok bool) {
	ok = x.write(a)
	if x.Writes != nil && x.Writes.MayWait(x.bodySent) && ok {
		// After the exchange nothing would count what waits.
		x.boundWrites()
		ok = http.NewResponseController(x.writer).Flush() == nil
	}
	return ok
}

func (x *Exchange) write(a *Answer) (ok bool) {
	if a.Drop {
		return false
	}
	if a.CloseConn && x.In.Major <= 2 && a.Upgrade == nil {
		// HTTP/2 has no such field: its server says goodbye instead, and lets other requests of the connection end.
		a.Header["Connection"] = closeValue
	}
	if x.In.Major == 1 && (a.Upgrade != nil || a.Status >= 400) {
		// A refused handshake names versions and protocols, too (RFC 6455 §4.4).
		spell(a.Header)
	}
	if a.Upgrade != nil {
		return x.sendUpgrade(a)
	}
	if a.Bytes != nil || a.Body == nil && a.From == FromEdge {
		return x.sendBytes(a)
	}
	x.sentHead(a.Status)
	x.writer.WriteHeader(a.Status)
	if a.Body == nil {
		x.boundWrites()
		return !x.Body.leftOver() || x.endConnection(a)
	}
	x.sink.x = x
	err := x.copyBody(a.Body, &x.sink)
	a.closeBody()
	if err != nil {
		return false
	}
	if x.bodySent == 0 {
		// The server writes the header by itself.
		x.boundWrites()
	}
	if x.Body.leftOver() {
		return x.endConnection(a)
	}
	x.sendTrailer(a)
	return true
}

func (x *Exchange) copyBody(body Source, client Sink) error {
	if source, movable := body.(MovableSource); movable && source.MayMove() {
		return x.copyBehind(source, client)
	}
	return body.CopyTo(client)
}

var closeValue = []string{"close"}

func (x *Exchange) sendBytes(a *Answer) bool {
	// What nobody reads is still read by the server, before it sends the answer.
	x.Body.boundRest()
	leftOver := x.Body.leftOver()
	if leftOver {
		a.Header["Connection"] = closeValue
	}
	head := x.In.Method == http.MethodHead
	if len(a.Bytes) > 0 || bodyAllowed(a.Status) && !head {
		a.Header["Content-Length"] = decimal(len(a.Bytes))
	}
	x.sentHead(a.Status)
	x.writer.WriteHeader(a.Status)
	if head || len(a.Bytes) == 0 || !bodyAllowed(a.Status) {
		x.boundWrites()
		return !leftOver || x.endConnection(a)
	}
	if x.Writes != nil {
		x.Writes.Gather(len(a.Bytes))
	}
	x.boundWrites()
	n, err := x.writer.Write(a.Bytes)
	x.sent(int64(n))
	if err != nil && x.In.Major != 1 {
		// An HTTP/2 server may still be writing what a failed write was given.
		x.page = nil
	}
	if err == nil && leftOver {
		return x.endConnection(a)
	}
	return err == nil
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// sendTrailer puts the fields after the body where the server sends them: those announced under their name, others the
// way net/http sends what was not announced.
func (x *Exchange) sendTrailer(a *Answer) {
	if len(a.Trailer) == 0 {
		return
	}
	announced := map[string]bool{}
	for _, name := range a.Header["Trailer"] {
		announced[name] = true
	}
	for name, values := range a.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		a.Header[name] = values
	}
}

// sendUpgrade gives the connection to the tunnel of the answer.
func (x *Exchange) sendUpgrade(a *Answer) bool {
	x.boundWrites()
	x.sentHead(a.Status)
	x.writer.WriteHeader(a.Status)
	if x.Meter != nil {
		// What was read ahead is the tunnel's, whatever it looks like.
		x.Meter.KeepAll()
	}
	client, buffered, err := http.NewResponseController(x.writer).Hijack()
	if err != nil {
		return false
	}
	defer client.Close()
	counted := &countedConn{client, &x.tunnelled, x.account}
	client = counted
	if x.Memory != nil {
		// A tunnel has a connection of its own, which counts.
		x.Memory.Leave()
	}
	var early []byte
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ = buffered.Reader.Peek(n)
		counted.received(n)
	}
	a.Upgrade.Join(client, early)
	return true
}

// decimal is the value of a header.
func decimal(n int) []string { return []string{strconv.Itoa(n)} }
