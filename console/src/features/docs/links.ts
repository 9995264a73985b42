// Links of a document, which lead from file to file in the repository, as links of the Web UI.

/** The index: docs/README.md. */
export const INDEX = 'README';

/** The console serves it to everybody; it replaces the pages of the API reference, which are not part of the Web UI. */
const OPENAPI = '/api/v1/openapi.json';

/** A page of the docs, another address, or a file of the repository that the Web UI does not have. */
export type LinkTarget = { kind: 'page'; to: string } | { kind: 'web'; href: string } | { kind: 'file'; path: string };

/** Address of a page by its file below docs/ without `.md`: `bans`, `reference/errors`. */
export function docsAddress(page: string): string {
  return page === INDEX ? '/docs' : `/docs/${page}`;
}

/** Returns where a link in docs/<page>.md leads. */
export function linkTarget(page: string, href: string): LinkTarget {
  if (/^https?:/.test(href)) return { kind: 'web', href };
  const { pathname, hash } = new URL(href, `http://repository/docs/${page}.md`);
  if (/^\/docs\/(reference\/api\/|api\/openapi[.]json$)/.test(pathname)) return { kind: 'web', href: OPENAPI };
  const target = /^\/docs\/((?:reference\/)?[A-Za-z0-9-]+)[.]md$/.exec(pathname)?.[1];
  return target ? { kind: 'page', to: docsAddress(target) + hash } : { kind: 'file', path: pathname.slice(1) };
}
