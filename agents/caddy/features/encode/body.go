package encode

import (
	"net/netip"
	"sync"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/internal/address"
)

// Room for what an encoder gives, so that it leaves in few pieces and an encoder seldom waits for a client.
const pieceBytes = 32 << 10

// body is the body of an answer on its way through an encoder. It is a source for the client and the sink of the body
// that it compresses. Whatever happens to the exchange, Close gives the encoder back.
type body struct {
	source  exchange.Source
	line    *line
	place   place
	level   int
	encoder encoder
	sink    exchange.Sink
	piece   []byte
	// Something was written that was not flushed.
	dirty bool
	// Where a call of the encoder did not return, nobody uses it again.
	inside bool
	// A server that may still write what a failed write was given: of HTTP/2 and later.
	lingering bool
	failed    bool
	taken     uint64
	given     uint64
}

// networkOf is the client network that an encoder is reserved for.
func networkOf(x *exchange.Exchange) netip.Prefix {
	if x.In.Claimed {
		return address.NetworkOf(x.In.Peer)
	}
	return address.NetworkOf(x.In.Client)
}

var bodies = sync.Pool{New: func() any { return &body{piece: make([]byte, 0, pieceBytes)} }}

// encode has a body compressed with a coding of which an encoder is reserved.
func (e *encoders) encode(x *exchange.Exchange, source exchange.Source, c exchange.Coding, level int) exchange.Source {
	b := bodies.Get().(*body)
	b.source, b.line, b.level, b.lingering = source, &e.lines[c], level, x.In.Major != 1
	b.place.begin(e, b.line, bytesOf(c, level), networkOf(x))
	return b
}

// CopyTo compresses the body into the client's sink. The encoder is free again before the last piece leaves, so that one
// whose answer fits into a piece never waits for a client.
func (b *body) CopyTo(sink exchange.Sink) (err error) {
	b.sink = sink
	b.inside = true
	b.encoder, err = b.line.begin(b.level, (*output)(b))
	b.inside = false
	if err != nil {
		return err
	}
	b.place.wait()
	if err := b.source.CopyTo((*input)(b)); err != nil {
		return err
	}
	b.place.goOn()
	b.inside = true
	err = b.encoder.Close()
	b.inside = false
	if err != nil {
		return err
	}
	b.release()
	return b.send()
}

// release gives the encoder back. It is safe to call again.
func (b *body) release() {
	if b.line == nil {
		return
	}
	if b.encoder != nil && !b.inside && !(b.failed && b.lingering) {
		b.line.idle[b.level].Put(b.encoder)
	}
	b.line.taken.Add(b.taken)
	b.line.given.Add(b.given + uint64(len(b.piece)))
	b.place.end()
	b.line, b.encoder = nil, nil
}

// Close gives up what is left of the body.
func (b *body) Close() {
	b.release()
	source, piece := b.source, b.piece
	spoiled := b.inside || b.failed && b.lingering
	b.source, b.sink, b.piece = nil, nil, piece[:0]
	b.dirty, b.inside, b.failed, b.lingering = false, false, false, false
	b.taken, b.given = 0, 0
	if !spoiled {
		bodies.Put(b)
	}
	source.Close()
}

// send gives the client what has gathered.
func (b *body) send() error {
	if len(b.piece) == 0 {
		return nil
	}
	b.place.wait()
	err := b.sink.Write(b.piece)
	b.place.goOn()
	b.failed = b.failed || err != nil
	b.given += uint64(len(b.piece))
	b.piece = b.piece[:0]
	return err
}

// input is the side of a body that takes what is to be compressed.
type input body

func (i *input) Write(p []byte) error {
	b := (*body)(i)
	b.dirty = true
	b.taken += uint64(len(p))
	b.place.goOn()
	b.inside = true
	_, err := b.encoder.Write(p)
	b.inside = false
	b.place.wait()
	return err
}

// Flush sends on all that was written, in a form that can be decoded by itself.
func (i *input) Flush() error {
	b := (*body)(i)
	if b.dirty {
		b.place.goOn()
		b.inside = true
		err := b.encoder.Flush()
		b.inside = false
		if err != nil {
			return err
		}
		b.dirty = false
		err = b.send()
		b.place.wait()
		if err != nil {
			return err
		}
	}
	return b.sink.Flush()
}

// output is the side of a body that an encoder writes to.
type output body

func (o *output) Write(p []byte) (int, error) {
	b := (*body)(o)
	for at := 0; ; {
		n := copy(b.piece[len(b.piece):cap(b.piece)], p[at:])
		b.piece = b.piece[:len(b.piece)+n]
		if at += n; at == len(p) {
			return at, nil
		}
		if err := b.send(); err != nil {
			return at, err
		}
	}
}
