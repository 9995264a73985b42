// What entries belong to. Deleting an owner ends all of its live entries, whatever their kinds.

/** The owner of everything that is published of a site. */
export function siteOwner(id: string): string {
  return `site:${id}`;
}

/** The owner of an IP list's header and chunks. */
export function listOwner(id: string): string {
  return `list:${id}`;
}
