// Package paths brings the path of a request into the one form in which rules read it and the origin resolves it, where the
// site has `pathNormalization` on. Without it the origin gets the path as the client spelled it.
//
// A path that origins resolve in different ways gets 400 `path-ambiguous`. The response is deferred, so that bans and CC
// mitigation see the request first; no rule runs for it.
package paths
