package origin

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/pages"
)

// conversationIdle is how long a client of gRPC may be silent, or not read.
const conversationIdle = time.Hour

// GRPC is the stage that finds out which requests are gRPC. HTTP/2 without TLS is there for sites with gRPC alone.
func GRPC(*core.Core) exchange.Stage {
	return func(x *exchange.Exchange) *exchange.Answer {
		in := &x.In
		if in.Major != 2 {
			return nil
		}
		switch pool := PoolOf(x.Plan); {
		case pool != nil && pool.grpc:
			if in.Method == http.MethodPost && isGRPC(in.Header["Content-Type"]) {
				*exchange.GRPC.Of(x) = true
			}
		case in.TLS == nil:
			return pages.Respond(x, http.StatusMisdirectedRequest, pages.SNIHostMismatch)
		}
		return nil
	}
}

// isGRPC reports whether a content type is application/grpc, alone or with the name of an encoding: application/grpc-web is
// another protocol.
func isGRPC(types []string) bool {
	const name = "application/grpc"
	if len(types) != 1 || len(types[0]) < len(name) || !strings.EqualFold(types[0][:len(name)], name) {
		return false
	}
	rest := types[0][len(name):]
	return rest == "" || rest[0] == '+' || rest[0] == ';'
}

// GRPCErrors is the response stage that makes errors of the edge ones that clients of gRPC read: trailers without a body.
func GRPCErrors(*core.Core) exchange.ResponseStage {
	return func(x *exchange.Exchange, a *exchange.Answer) {
		if !exchange.IsGRPC(x) {
			return
		}
		if a.Body != nil {
			a.Body.Close()
			a.Body = nil
		}
		a.Replaces(a.Status, a.From)
		h := a.Header
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Security-Policy", "Location", "Vary", "X-Content-Type-Options"} {
			delete(h, name)
		}
		h["Content-Type"] = grpcType
		h["Grpc-Status"] = []string{strconv.Itoa(grpcStatus(a.Status))}
		h["Grpc-Message"] = []string{grpcMessage(a)}
		a.Status, a.Bytes = http.StatusOK, nil
	}
}

var grpcType = []string{"application/grpc"}

// Codes of gRPC.
const (
	grpcUnknown           = 2
	grpcDeadlineExceeded  = 4
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcStatus is the code for a status, as clients of gRPC derive it; the edge knows more of what it refuses.
func grpcStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusInternalServerError:
		return grpcInternal
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return grpcPermissionDenied
	case http.StatusNotFound:
		return grpcUnimplemented
	case http.StatusTooManyRequests:
		return grpcResourceExhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return grpcUnavailable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return grpcDeadlineExceeded
	}
	return grpcUnknown
}

func grpcMessage(a *exchange.Answer) string {
	what := a.Code
	if what == "" {
		what = "HTTP status " + strconv.Itoa(a.Status)
	}
	return "edge: " + what
}

// within is the times of a request with a deadline: nobody waits for the origin beyond it.
func (t times) within(timeout []string) times {
	if len(timeout) != 1 {
		return t
	}
	left := grpcTimeout(timeout[0])
	if left <= 0 {
		return t
	}
	return times{min(t.connect, left), t.send, min(t.read, left)}
}

// grpcTimeout reads the header grpc-timeout, 0 where it is malformed.
//
//	grpcTimeout("100m") // 100 ms
func grpcTimeout(value string) time.Duration {
	const maxDigits = 8
	if len(value) < 2 || len(value) > maxDigits+1 {
		return 0
	}
	unit, known := grpcUnits[value[len(value)-1]]
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 32)
	if !known || err != nil {
		return 0
	}
	if most := uint64(time.Duration(1<<63-1) / unit); n > most {
		n = most
	}
	return time.Duration(n) * unit
}

var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// sitesOfGRPC are those of a configuration. They are looked for when somebody wants to speak HTTP/2 without TLS; a change
// costs what was changed.
type sitesOfGRPC struct {
	mu    sync.Mutex
	seen  *exchange.Tables
	sites map[uint32]struct{}
}

var grpcSites = core.NewComponent("sites with gRPC", func(*core.Core) *sitesOfGRPC {
	return &sitesOfGRPC{seen: exchange.NewTables(), sites: map[uint32]struct{}{}}
})

// ServesGRPC reports whether any site has gRPC on.
func ServesGRPC(c *core.Core) bool {
	s, tables := grpcSites.Of(c), c.Tables()
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, plan := range tables.PlansSince(s.seen) {
		delete(s.sites, number)
		if plan == nil || plan.Disabled || plan.Unserved || plan.Unguarded {
			continue
		}
		if pool := PoolOf(plan); pool != nil && pool.grpc {
			s.sites[number] = struct{}{}
		}
	}
	s.seen = tables
	return len(s.sites) > 0
}
