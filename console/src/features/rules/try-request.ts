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
