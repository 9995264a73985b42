package handshake

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// counter is a reason for which handshakes fail.
type counter int

const (
	unknownName counter = iota
	disabled
	port
	noCertificate
	protocol
	clientCertificate
	other
	reasons
)

var reasonNames = [reasons]string{"unknown-name", "disabled", "port", "no-certificate", "protocol", "client-certificate", "other"}

// counters are since the start of the process.
type counters struct {
	handshakes, resumed atomic.Uint64
	refused             [reasons]atomic.Uint64
}

func (c *counters) refuse(reason counter) { c.refused[reason].Add(1) }

// verified counts a handshake of which only the client's last word is missing.
func (t *Terminator) verified(state tls.ConnectionState) error {
	t.counters.handshakes.Add(1)
	if state.DidResume {
		t.counters.resumed.Add(1)
	}
	return nil
}

// Failed counts a handshake that failed, by the reason; what was refused here was counted then.
func (t *Terminator) Failed(err error) {
	var own *refusal
	if err == nil || errors.As(err, &own) {
		return
	}
	t.counters.refuse(reasonOf(err))
}

// What crypto/tls says where the two sides have nothing in common; it has no values for it.
var nothingInCommon = []string{
	"tls: client offered only unsupported versions", "tls: no cipher suite supported by both", "tls: no key exchanges supported by both",
	"tls: client requested unsupported application protocols",
}

// And where GetCertificate has none.
const noneConfigured = "tls: no certificates configured"

func reasonOf(err error) counter {
	var invalid *tls.CertificateVerificationError
	text := err.Error()
	switch {
	case errors.Is(err, errTooDeep), errors.As(err, &invalid):
		return clientCertificate
	case text == noneConfigured:
		return noCertificate
	case slices.ContainsFunc(nothingInCommon, func(start string) bool { return strings.HasPrefix(text, start) }):
		return protocol
	}
	return other
}

// FillStatus says how handshakes fared, and what is wrong with certificates.
func (t *Terminator) FillStatus(status *edgev1.GetStatusResponse) {
	if status.Tls == nil {
		status.Tls = &edgev1.TlsCounters{}
	}
	counted := status.Tls
	counted.Handshakes, counted.Resumed = t.counters.handshakes.Load(), t.counters.resumed.Load()
	if counted.Refused == nil {
		counted.Refused = map[string]uint64{}
	}
	for reason, name := range reasonNames {
		if n := t.counters.refused[reason].Load(); n > 0 {
			counted.Refused[name] = n
		}
	}
	counted.Certificates, counted.Parsed = uint64(t.pack.size()), uint64(t.cache.parsed())
	// A report is asked for again and again.
	t.tickets.forget()
	status.SessionTicketKeysVersion = t.tickets.version()
	if damage := t.pack.problem(); damage != "" {
		status.Warnings = append(status.Warnings, damage)
	}
	status.Warnings = append(status.Warnings, t.warnings()...)
}

// WriteMetrics writes how handshakes fared.
func (t *Terminator) WriteMetrics(w io.Writer) {
	fmt.Fprintf(w, "# HELP svc_edge_tls_handshakes_total Completed TLS handshakes, by whether they resumed a session.\n# TYPE svc_edge_tls_handshakes_total counter\n")
	resumed := t.counters.resumed.Load()
	full := t.counters.handshakes.Load() - min(resumed, t.counters.handshakes.Load())
	fmt.Fprintf(w, "svc_edge_tls_handshakes_total{resumed=\"no\"} %d\nsvc_edge_tls_handshakes_total{resumed=\"yes\"} %d\n", full, resumed)
	fmt.Fprintf(w, "# HELP svc_edge_tls_refused_total Failed TLS handshakes, by reason.\n# TYPE svc_edge_tls_refused_total counter\n")
	for reason, name := range reasonNames {
		fmt.Fprintf(w, "svc_edge_tls_refused_total{reason=%q} %d\n", name, t.counters.refused[reason].Load())
	}
	fmt.Fprintf(w, "# HELP svc_edge_tls_certificates Certificates on this node.\n# TYPE svc_edge_tls_certificates gauge\nsvc_edge_tls_certificates %d\n", t.pack.size())
	fmt.Fprintf(w, "# HELP svc_edge_tls_certificates_parsed Certificates parsed in memory.\n# TYPE svc_edge_tls_certificates_parsed gauge\nsvc_edge_tls_certificates_parsed %d\n", t.cache.parsed())
}
