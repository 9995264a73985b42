package h2

import (
	"errors"
	"fmt"
)

// Codes of errors (RFC 9113 §7).
const (
	codeNo              = 0x0
	codeProtocol        = 0x1
	codeInternal        = 0x2
	codeFlowControl     = 0x3
	codeStreamClosed    = 0x5
	codeFrameSize       = 0x6
	codeRefused         = 0x7
	codeCancel          = 0x8
	codeCompression     = 0x9
	codeEnhanceYourCalm = 0xb
)

var (
	// ErrUnprocessed says that the origin did not process the request, and never will: it may be sent again.
	ErrUnprocessed = errors.New("the origin did not process the request")
	// ErrSilent says that the origin sent nothing for too long, or took nothing.
	ErrSilent = errors.New("the origin sent nothing for too long")
	// ErrMalformed says that a response breaks the rules. Its connection goes on.
	ErrMalformed = errors.New("the origin sent a malformed response")
	// ErrTooLarge says that the headers of a response are too large. Its connection goes on.
	ErrTooLarge = errors.New("the headers of the origin's response are too large")
	// ErrNotHTTP2 says that a connection does not begin as HTTP/2 does.
	ErrNotHTTP2 = errors.New("the origin does not speak HTTP/2")
	// ErrStopped says that the origin takes no more of a request's body. Its response may be complete.
	ErrStopped = errors.New("the origin takes no more of the request's body")

	errClosed = errors.New("the connection to the origin is closed")
	errStuck  = errors.New("the connection to the origin does not respond")
)

// ResetError says that the origin reset a stream.
type ResetError struct{ Code uint32 }

// Error is for logs.
func (e *ResetError) Error() string {
	return fmt.Sprintf("the origin reset the stream (error code %d)", e.Code)
}

// connError is an error of the origin that ends the connection.
type connError struct {
	code uint32
	what string
}

// Error is for logs.
func (e *connError) Error() string {
	return fmt.Sprintf("the origin broke the protocol of HTTP/2 (error code %d): %s", e.code, e.what)
}

// OfStream reports whether a failure is one of its request, and not of the connection.
func OfStream(err error) bool {
	var reset *ResetError
	return errors.As(err, &reset) || errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge)
}
