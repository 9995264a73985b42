// Package rules has the rules of sites and of the platform act: on what a request is, on what an origin gets, on what
// the client gets, and on the settings of other features, for the one exchange.
//
// A rule is compiled when its entry is applied, into the list of its phase. A site without rules costs a look at a
// pointer, a phase without rules a look at the length of a list.
//
// Each phase runs the platform's list before the site's, in one order. A rule that does not compile fails its entry
// whole. A condition that cannot be told refuses the request (503 `policy-unavailable`); a header's value that cannot
// be, or a condition about an answer, leaves out its action. What rules read follows their rewrites and header actions;
// bulk redirects look at what was asked. Rules that do not match allocate nothing.
package rules
