package handshake

import "edge.svc/caddy/internal/tlstest"

type pair = tlstest.Pair

var (
	authority, roots = tlstest.Authority, tlstest.Roots
	ecdsaKey, rsaKey = tlstest.ECDSAKey, tlstest.RSAKey
	issue, issueWith = tlstest.Issue, tlstest.IssueWith
	framesOf         = tlstest.Frames
	frameMaterial    = tlstest.FrameMaterial
	frameStaple      = tlstest.FrameStaple
	appendPack       = tlstest.AppendPack
	replacePack      = tlstest.ReplacePack
)
