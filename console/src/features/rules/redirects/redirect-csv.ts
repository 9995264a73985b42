// Bulk redirects as a table in a file: source, target, status, keep the query. Pure.
import { canonicalSource, faultsOf, type Redirect, type RedirectFault, STATUSES, type Status } from './redirect.ts';

const HEADING = ['source', 'target', 'status', 'preserve_query'];

/** Text of a file with all of them; programs that calculate with tables run nothing of it. */
export function redirectsCsv(list: readonly Redirect[]): string {
  const lines = list.map(({ source, target, statusCode, preserveQuery }) =>
    [source, target, String(statusCode), String(preserveQuery)].map(quoted).join(','),
  );
  return `${[HEADING.join(','), ...lines].join('\r\n')}\r\n`;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export interface LineFault {
  /** From 1. */
  line: number;
  fault: RedirectFault | 'columns' | 'status' | 'preserveQuery' | 'quote';
}

export interface ReadRedirects {
  redirects: Redirect[];
  faults: LineFault[];
}

/**
 * The redirects of a file: two to four columns, separated by commas, semicolons or tabs, with or without a heading. Lines
 * with something wrong are told and left out.
 */
export function readRedirectsCsv(text: string): ReadRedirects {
  const redirects: Redirect[] = [];
  const faults: LineFault[] = [];
  const sources = new Set<string>();
  for (const { line, cells, open } of rowsOf(text.replace(/^\uFEFF/, ''))) {
    if (cells.length === 1 && cells[0]!.trim() === '') continue;
    if (line === 1 && cells[0]!.trim().toLowerCase() === HEADING[0]) continue;
    if (open) {
      faults.push({ line, fault: 'quote' });
      continue;
    }
    const read = redirectOf(cells.map((cell) => cell.trim()));
    const wrong = typeof read === 'string' ? [read] : faultsOf(read, sources);
    for (const fault of wrong) faults.push({ line, fault });
    if (typeof read === 'string' || wrong.length > 0) continue;
    const source = canonicalSource(read.source)!;
    sources.add(source);
    redirects.push({ ...read, source });
  }
  return { redirects, faults };
}

function redirectOf(cells: readonly string[]): Redirect | LineFault['fault'] {
  if (cells.length < 2 || cells.length > HEADING.length) return 'columns';
  const [source = '', target = '', status = '', keep = ''] = cells;
  const statusCode = status === '' ? 301 : Number(status);
  if (!STATUSES.includes(statusCode as Status)) return 'status';
  const preserveQuery = YES.includes(keep.toLowerCase());
  if (!preserveQuery && !NO.includes(keep.toLowerCase())) return 'preserveQuery';
  return { source, target, statusCode: statusCode as Status, preserveQuery };
}

const YES = ['true', '1', 'yes'];
const NO = ['', 'false', '0', 'no'];

interface Row {
  line: number;
  cells: string[];
  /** Its quote has no end. */
  open: boolean;
}

/** Rows of a file; quotes take separators and line ends in, two of them are one. */
function rowsOf(text: string): Row[] {
  const first = text.split('\n', 1)[0]!;
  const separator = [',', ';', '\t'].find((each) => first.includes(each)) ?? ',';
  const rows: Row[] = [];
  let row: Row = { line: 1, cells: [], open: false };
  let cell = '';
  let line = 1;
  const endRow = () => {
    row.cells.push(cell);
    rows.push(row);
    cell = '';
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '\n') line++;
    if (row.open) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') cell += text[++at];
      else row.open = false;
    } else if (character === '"' && cell.trim() === '') {
      cell = '';
      row.open = true;
    } else if (character === separator) {
      row.cells.push(cell);
      cell = '';
    } else if (character === '\n') {
      endRow();
      row = { line, cells: [], open: false };
    } else if (character !== '\r') cell += character;
  }
  endRow();
  return rows;
}
