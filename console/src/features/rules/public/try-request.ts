// What is typed of a request that is tried. Pure.

/** Lines as "Name: value"; one without a colon is a name without value. */
export function headersOf(lines: readonly string[]): { name: string; value: string }[] {
  return lines.map((line) => {
    const colon = line.indexOf(':');
    return colon < 0
      ? { name: line.trim(), value: '' }
      : { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() };
  });
}

/** Without what is empty: it is not known of the request. */
export function optional(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '' && value !== null));
}

/** A domain that a browser can ask: of a wildcard, one that it holds. */
export function triedHost(domains: readonly string[]): string {
  const [first = 'example.com'] = domains;
  return domains.find((domain) => !domain.startsWith('*.')) ?? first.replace('*', 'www');
}

/** An address of one domain as that of another; of other domains, as it is. */
export function movedUrl(url: string, from: string, to: string): string {
  const scheme = /^https?:\/\//.exec(url)?.[0] ?? '';
  const start = `${scheme}${from}`;
  const rest = url.slice(start.length);
  const own = scheme !== '' && url.startsWith(start) && /^([:/?#]|$)/.test(rest);
  return own ? `${scheme}${to}${rest}` : url;
}
