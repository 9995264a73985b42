/** The part of a site that a search names with its first or last word or words, and the rest of the search. */
export function splitPart<P>(
  text: string,
  titled: readonly { part: P; titles: readonly string[] }[],
): { part: P; rest: string } | null {
  const typed = text.trim();
  const lower = typed.toLowerCase();
  const all = titled
    .flatMap(({ part, titles }) => titles.map((title) => ({ part, title: title.toLowerCase() })))
    // "WAF events" before "WAF".
    .sort((a, b) => b.title.length - a.title.length);
  for (const { part, title } of all) {
    if (lower === title) return { part, rest: '' };
    if (lower.startsWith(`${title} `)) return { part, rest: typed.slice(title.length).trim() };
    if (lower.endsWith(` ${title}`)) return { part, rest: typed.slice(0, -title.length).trim() };
  }
  return null;
}
