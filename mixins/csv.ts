// Lines of CSV (RFC 4180) that a spreadsheet reads as what they are.

/** What a spreadsheet takes for a formula, or for the end of a cell. */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

/** A cell with text that others wrote: a leading apostrophe keeps what looks like a formula a text. */
export function textCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A line of cells that are written as they are. */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.join(',')}\r\n`;
}
