// Package sitepages puts pages of operators in the place of error responses.
//
// A site may have a page for a status or for all statuses of a class, as a template or as a redirect. It replaces the page of the
// edge, and with `intercept_origin_errors` also an error response of the origin. The platform has pages for hosts of no
// site and for disabled sites. Challenges, redirects and the responses to programs (421, 508) stay as they are.
//
// Requests that are refused before their site is known get the page of the edge.
package sitepages
