package origin

import (
	"errors"
	"net"
	"os"
)

// failure says why an origin could not be used.
type failure string

// The names are those that origin health reports.
const (
	failConnect   failure = "connect_failed"
	failTimeout   failure = "timeout"
	failStatus    failure = "upstream_status"
	failDNS       failure = "dns_failed"
	failForbidden failure = "address_forbidden"
	failTLS       failure = "tls_failed"
)

// failFull is no failure of an origin: as many connections to it are in use as may be.
const failFull failure = "connections_in_use"

type originError struct {
	class failure
	cause error
}

func fail(class failure, cause error) *originError { return &originError{class, cause} }

// Error is for logs; the client never sees it.
func (e *originError) Error() string {
	if e.cause == nil {
		return string(e.class)
	}
	return string(e.class) + ": " + e.cause.Error()
}

func (e *originError) Unwrap() error { return e.cause }

// classOf names the failure behind an error; what is nothing else is a failed connection.
func classOf(err error) failure {
	var own *originError
	if errors.As(err, &own) {
		return own.class
	}
	if isTimeout(err) {
		return failTimeout
	}
	return failConnect
}

// moreTelling is the failure that says more to a client: the later one of two that say as much.
func moreTelling(before, now error) error {
	if before != nil && classOf(before).telling() > classOf(now).telling() {
		return before
	}
	return now
}

// telling is how much a failure says. An origin that is silent has more to do with the request than one that nobody reaches,
// and that more than one that was not asked.
func (f failure) telling() int {
	switch f {
	case failDNS, failForbidden:
		return 0
	case failFull:
		return 1
	case failTimeout:
		return 3
	}
	return 2
}

func isTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

var (
	errMalformed = errors.New("the origin sent a malformed response")
	errTooLarge  = errors.New("the headers of the origin's response are too large")
	errAborted   = errors.New("the client disconnected")
)
