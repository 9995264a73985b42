// Package rules applies the rules of sites and of the platform to one exchange: to the request, the copy for the origin, the
// response for the client, and the settings of other features.
//
// A rule is compiled when its entry is applied, into the list of its phase. A site without rules costs a look at a
// pointer, a phase without rules a look at the length of a list.
//
// Each phase runs the platform's list before the site's, in one order. A rule that does not compile fails its whole entry. A
// request whose condition is undecidable is refused (503 `policy-unavailable`). An undecidable header value, or an
// undecidable condition about a response, omits its action. Rules read the results of their rewrites and header actions;
// bulk redirects read the client's request. Rules that do not match allocate nothing.
package rules
