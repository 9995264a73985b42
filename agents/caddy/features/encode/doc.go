// Package encode compresses responses of sites, as the site wishes and the client accepts.
//
// Where a site has compression, the stage asks origins for responses without any coding, so that there is one of each. The
// response stage chooses a coding, and the body passes through an encoder on its way.
//
// It compresses responses of a site only, never the edge's own. Encoders at work are bounded by coding, and the memory of all
// that exist in total; one client network has at most half of either. No request waits for an encoder: beyond the bounds the
// next coding is used. A piece of 32 KiB lies between encoder and client. An encoder that waits for a client or an origin
// frees its place at work, and waits for a place before it goes on. One that fails in the middle of a call ends its own
// response alone and is never reused.
package encode
