// Ranges of addresses with what is recorded of them, as lists have them: one a line, addresses as numbers.

export interface Range {
  first: bigint;
  last: bigint;
  /** The columns after the addresses. */
  columns: string[];
}

/** The rows of a list, `start,end,…`; a column may be quoted, and holds no line break. Throws at what is no such row. */
export function* readRanges(csv: string): Generator<Range> {
  let begin = 0;
  for (let line = 1; begin < csv.length; line++) {
    const end = csv.indexOf('\n', begin);
    const text = csv.slice(begin, end < 0 ? csv.length : end).replace(/\r$/, '');
    begin = end < 0 ? csv.length : end + 1;
    const [first = '', last = '', ...columns] = splitRow(text) ?? [];
    if (!/^\d{1,39}$/.test(first) || !/^\d{1,39}$/.test(last))
      throw new RangeError(`line ${line} has no valid range: ${text}`);
    yield { first: BigInt(first), last: BigInt(last), columns };
  }
}

/** Undefined where quotes are not as they should be. */
function splitRow(row: string): string[] | undefined {
  if (!row.includes('"')) return row.split(',');
  const columns: string[] = [];
  const column = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (let more = true; more; ) {
    const match = column.exec(row);
    if (!match) return undefined;
    columns.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    more = match[3] === ',';
  }
  return columns;
}

export interface Network {
  address: bigint;
  /** How many bits of the address count, of 32 or 128. */
  bits: number;
}

/** The fewest networks that make up a range of addresses of `width` bits, in order. */
export function* networksOf(first: bigint, last: bigint, width: 32 | 128): Generator<Network> {
  for (let address = first; address <= last; ) {
    let size = 1n;
    let bits: number = width;
    while (bits > 0 && (address & size) === 0n && address + 2n * size - 1n <= last) {
      size *= 2n;
      bits--;
    }
    yield { address, bits };
    address += size;
  }
}
