// Package prefetch fetches URLs of sites, as visitors would, so that their responses are stored.
//
// Requests go through the edge without a connection. They are neither counted nor challenged, and no rule denies them. The node has
// four at a time, and begins at most 50 a second, whatever the number of tasks.
//
// A sitemap is read as a stream: its size, its depth and the length of its URLs are bounded, and a document type declaration, with
// which entities come, is refused. Only hosts of the sitemap's own site are followed.
package prefetch
