package waf

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/waf/bodies"
)

// What is unpacked of a body is at most so many times as long as it is, and lies in memory up to a number of bytes. The
// rest lies in a file.
const (
	maxRatio       = 20
	unpackedMemory = 128 << 10
	unpackPiece    = 16 << 10
)

// errPacked says that the content of a body is not known: no decoder, wrong data, or too much of it.
var errPacked = errors.New("the content of a body cannot be unpacked")

// codingOf is the content coding of a body, and whether it has one at all. One that stands for several is "".
func codingOf(x *exchange.Exchange) (name string, coded bool) {
	sent := x.In.Header["Content-Encoding"]
	if len(sent) != 1 {
		return "", len(sent) > 0
	}
	name = strings.ToLower(strings.TrimSpace(sent[0]))
	if bodies.Decoders[name] == nil {
		return "", name != "identity"
	}
	return name, true
}

// unpacked is the content of a body in the room of its site.
type unpacked struct {
	room   exchange.Room
	memory []byte
	taken  int
	file   exchange.SpoolFile
	filed  int64
}

func (u *unpacked) length() int64 { return int64(len(u.memory)) + u.filed }

// put keeps more.
func (u *unpacked) put(p []byte) error {
	for u.file == nil && u.taken-len(u.memory) < len(p) && u.taken < unpackedMemory && u.room.Take(unpackPiece) {
		u.taken += unpackPiece
	}
	if u.file == nil {
		n := min(len(p), u.taken-len(u.memory))
		u.memory = append(u.memory, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return nil
	}
	if u.file == nil {
		file, err := u.room.File()
		if err != nil {
			return err
		}
		u.file = file
	}
	n, err := u.file.WriteAt(p, u.filed)
	u.filed += int64(n)
	return err
}

// ReadAt reads over the border between memory and file.
func (u *unpacked) ReadAt(p []byte, at int64) (n int, err error) {
	if at < int64(len(u.memory)) {
		n = copy(p, u.memory[at:])
	}
	if n == len(p) {
		return n, nil
	}
	if u.file == nil {
		return n, io.EOF
	}
	more, err := u.file.ReadAt(p[n:], at+int64(n)-int64(len(u.memory)))
	return n + more, err
}

// close gives the room back.
func (u *unpacked) close() {
	u.room.Give(u.taken)
	if u.file != nil {
		_ = u.file.Close()
	}
}

// unpack makes the content of a body with a coding what is inspected. It fails with errPacked where there is no such
// content, or as the room and the time of the inspection do. It is called once, and nothing else runs in between: decoders
// take memory.
func (o *rounds) unpack(coding string) error {
	packed := o.body
	length, err := packed.in.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := o.rewind(); err != nil {
		return err
	}
	decoder, err := bodies.Decoders[coding](bufio.NewReader(o))
	if err == nil {
		o.content = &unpacked{room: packed.room}
		packed.whole, err = o.content.fill(decoder, o.s.bodyLimit, length*maxRatio, packed.whole)
		bodies.CloseDecoder(decoder)
	}
	switch {
	case o.err != nil:
		return o.err
	case err != nil && err != errRoom:
		err = errPacked
	}
	if rewound := o.rewind(); rewound != nil {
		return rewound
	}
	if err == nil {
		doubted, unread := o.doubted()
		if unread != nil {
			return unread
		}
		if doubted {
			err = errPacked
		}
	}
	if rewound := o.rewind(); rewound != nil {
		return rewound
	}
	if err != nil {
		return err
	}
	o.packed = o.body.in
	o.body.in, o.body.whole = io.NewSectionReader(o.content, 0, o.content.length()), packed.whole
	return nil
}

// rewind goes back to the beginning of the body.
func (o *rounds) rewind() error {
	if o.again() {
		return nil
	}
	return o.err
}

// errRoom says that there is no room for what was unpacked.
var errRoom = errors.New("there is no room for the content of a body")

// fill keeps what a decoder gives, up to a limit, and reports whether it is all. More than most is none. The coding may end
// in its middle where the body goes on.
func (u *unpacked) fill(decoder io.Reader, limit, most int64, all bool) (whole bool, err error) {
	piece := make([]byte, unpackPiece)
	for {
		n, err := decoder.Read(piece)
		if u.length()+int64(n) > most {
			return false, errPacked
		}
		took := min(int64(n), limit-u.length())
		if u.put(piece[:took]) != nil {
			return false, errRoom
		}
		switch {
		case int64(n) > took:
			return false, nil
		case err == io.EOF:
			return all, nil
		case err == io.ErrUnexpectedEOF && !all:
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// doubted reports whether somebody who knows of no codings reads a packed body as one of its kind.
func (o *rounds) doubted() (bool, error) {
	switch o.kind {
	case bodies.Multipart:
		return bodies.HasBorder(o, o.x.In.Header.Get("Content-Type")), o.err
	case bodies.JSON, bodies.XML:
		head := make([]byte, 64)
		n, err := io.ReadFull(o, head)
		if err == io.ErrUnexpectedEOF {
			err = nil
		}
		return bodies.BeginsLike(head[:n], o.kind), err
	}
	return false, nil
}

// readPacked takes what an origin reads of a packed body that knows of no codings.
func (o *rounds) readPacked() error {
	content := o.body
	o.body = look{in: o.packed}
	defer func() { o.body = content }()
	if !o.again() {
		return o.err
	}
	switch o.kind {
	case bodies.Form:
		post := &bodies.Arguments{Add: o.addPost}
		if err := bodies.Fields(o, post.Put); err != nil {
			return err
		}
		post.End()
	case bodies.Raw:
		if err := bodies.Texts(o, func(text string) {
			if o.next(); o.err == nil {
				bodies.Set(o.vars.RequestBody(), text)
				bodies.Set(o.vars.RequestBodyLength(), strconv.Itoa(len(text)))
				o.bytes = len(text)
			}
		}); err != nil {
			return err
		}
	}
	return o.err
}
