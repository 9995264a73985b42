package pages

import (
	"maps"
	"slices"
)

// Codes of the header X-Svc-Error.
const (
	BadRequest           = "bad-request"
	BodyTooLarge         = "body-too-large"
	ChallengeUnavailable = "challenge-unavailable"
	ClientCertRequired   = "client-cert-required"
	EdgeBusy             = "edge-busy"
	HTTPSRequired        = "https-required"
	HeaderTooLarge       = "header-too-large"
	IPBanned             = "ip-banned"
	InternalError        = "internal-error"
	LoopDetected         = "loop-detected"
	Maintenance          = "maintenance"
	MethodNotAllowed     = "method-not-allowed"
	NoOrigin             = "no-origin"
	NotFound             = "not-found"
	OriginBusy           = "origin-busy"
	OriginError          = "origin-error"
	OriginTimeout        = "origin-timeout"
	OriginUnreachable    = "origin-unreachable"
	PathAmbiguous        = "path-ambiguous"
	PolicyDenied         = "policy-denied"
	PolicyUnavailable    = "policy-unavailable"
	SiteDisabled         = "site-disabled"
	SNIHostMismatch      = "sni-host-mismatch"
	TooLarge             = "too-large"
	UnknownHost          = "unknown-host"
	URITooLong           = "uri-too-long"
	WAFBlocked           = "waf-blocked"
	WAFBusy              = "waf-busy"
	WebSocketDisabled    = "websocket-disabled"
	headerError          = "X-Svc-Error"
	maxRequestIDBytes    = 128
)

// Answers to programs rather than people.
var plain = map[string]string{
	LoopDetected:    "loop detected\n",
	SNIHostMismatch: "the host does not belong to this connection\n",
}

// Codes returns all codes, in no order.
func Codes() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(texts)), maps.Keys(plain))
}

// ForPrograms reports whether the response of a code is for programs rather than people.
func ForPrograms(code string) bool { return plain[code] != "" }
