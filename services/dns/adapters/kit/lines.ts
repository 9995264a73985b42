// Resolution lines in the codes of a provider.
import { RESOLUTION_LINES, type ResolutionLine } from '../../../../contract/scalars/resolution-line.ts';
import type { Line } from '../adapter.ts';

export type LineCodes = Readonly<Record<ResolutionLine, string>>;

/** A code that is none of ours is a foreign line, by this code. */
export function lineOfCode(codes: LineCodes, code: string): Line {
  return RESOLUTION_LINES.find((line) => codes[line] === code) ?? `other:${code}`;
}

export function codeOfLine(codes: LineCodes, line: Line): string {
  return line.startsWith('other:') ? line.slice('other:'.length) : codes[line as ResolutionLine];
}
