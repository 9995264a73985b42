// What entries belong to. Deleting an owner ends all of its live entries, whatever their kinds.

/** The owner of everything that is published of a site. */
export function siteOwner(id: string): string {
  return `site:${id}`;
}

/** The site that the owner is; null where it is none. */
export function siteOfOwner(owner: string | null): string | null {
  const prefix = siteOwner('');
  return owner?.startsWith(prefix) ? owner.slice(prefix.length) : null;
}

/** The owner of what is published of one node. */
export function nodeOwner(id: string): string {
  return `node:${id}`;
}

/** The owner of an IP list's header and chunks. */
export function listOwner(id: string): string {
  return `list:${id}`;
}
