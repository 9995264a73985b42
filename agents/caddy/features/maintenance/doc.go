// Package maintenance answers for sites in maintenance: 503, with the site's own page or the edge's.
//
// Clients of some networks and requests for some paths still reach the site, and so do certificate authorities. A path exempts
// only in the one spelling that every origin reads alike, and only requests whose address nobody merely claims.
package maintenance
