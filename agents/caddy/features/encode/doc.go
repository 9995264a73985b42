// Package encode compresses what sites answer, as a site wishes and a client accepts.
//
// Where a site has answers compressed, its origins are asked for answers without any coding, so that there is one of each:
// the stage asks for it, the response stage chooses a coding, and the body passes through an encoder on its way.
//
// Only answers of a site, never the edge's own. Encoders at work are bounded by coding, and nothing waits for one:
// beyond the bound comes the next coding. A piece of 32 KiB lies between encoder and client. An encoder that failed in
// the middle of a call is used by nobody again, and ends its own answer alone.
package encode
