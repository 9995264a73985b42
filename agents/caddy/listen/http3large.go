package listen

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

const (
	dataFrame    = 0
	headersFrame = 1
	// A head takes less when it is packed. Up to here the stages refuse one that is larger once it is unpacked.
	maxUnpackedHead = 2 * maxHeaderBlock
)

// refuseLarge responds with the edge's page to a request whose head is announced to be larger than any may be: quic-go's own
// response has neither X-Svc-Error nor a request ID. It reads nothing of other requests.
func refuseLarge(stream *quic.Stream) bool {
	if announcedHead(stream) <= maxHeaderBlock {
		return false
	}
	stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeExcessiveLoad))
	// A client that is gone gets no response.
	_, _ = stream.Write(packed(refusal(http.StatusRequestHeaderFieldsTooLarge)))
	_ = stream.Close()
	return true
}

// announcedHead is the length that the first frame of a request says its head has, 0 where the frame is another one.
func announcedHead(stream *quic.Stream) uint64 {
	var begin [1 + 8]byte
	if n, _ := stream.Peek(begin[:2]); n < 2 || begin[0] != headersFrame {
		return 0
	}
	whole := begin[:2]
	// RFC 9000 §16: the first two bits say how many bytes a number takes.
	if more := 1 << (begin[1] >> 6); more > 1 {
		whole = begin[:1+more]
		if n, _ := stream.Peek(whole); n < len(whole) {
			return 0
		}
	}
	length, _, err := quicvarint.Parse(whole[1:])
	if err != nil {
		return 0
	}
	return length
}

// packed is a response of HTTP/1.1 as one of HTTP/3.
func packed(raw []byte) []byte {
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		panic(err)
	}
	// It is memory that is read.
	body, _ := io.ReadAll(response.Body)
	var head bytes.Buffer
	encoder := qpack.NewEncoder(&head)
	// A buffer takes everything.
	_ = encoder.WriteField(qpack.HeaderField{Name: ":status", Value: response.Status[:3]})
	for name, values := range response.Header {
		if name == "Connection" {
			continue
		}
		for _, value := range values {
			_ = encoder.WriteField(qpack.HeaderField{Name: strings.ToLower(name), Value: value})
		}
	}
	return append(frameOf(headersFrame, head.Bytes()), frameOf(dataFrame, body)...)
}
