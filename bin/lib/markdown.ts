/** A text as it stands in a cell of a Markdown table. */
export const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');

/** A Markdown table; its cells are texts that are escaped already. */
export const table = (head: readonly string[], rows: readonly string[][]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('');

/** Code in a cell: a bar would end the cell. */
export const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;
