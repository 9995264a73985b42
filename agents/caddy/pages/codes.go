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
	PurgeKeyInvalid      = "purge-key-invalid"
	PurgeRateLimited     = "purge-rate-limited"
	PurgeUnavailable     = "purge-unavailable"
	PurgeURLInvalid      = "purge-url-invalid"
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

	PurgeKeyInvalid:  `{"code":"purge-key-invalid","message":"X-Purge-Key is not the key of the site."}` + "\n",
	PurgeRateLimited: `{"code":"purge-rate-limited","message":"Too many PURGE requests. Repeat the request after Retry-After."}` + "\n",
	PurgeUnavailable: `{"code":"purge-unavailable","message":"The node does not reach the console. Repeat the request later."}` + "\n",
	PurgeURLInvalid:  `{"code":"purge-url-invalid","message":"The URL must be one of the site, of at most 2048 bytes."}` + "\n",
}

// Codes returns all codes, in no order.
func Codes() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(texts)), maps.Keys(plain))
}

// ForPrograms reports whether the response of a code is for programs rather than people.
func ForPrograms(code string) bool { return plain[code] != "" }
