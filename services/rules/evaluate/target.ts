// Targets of redirects and rewrites: what comes of a decoded path is percent-encoded in the end (RFC 3986, sections 2.4 and
// 3.3), and what is written in the rule is not. So each byte of a value has a mark that says where it is from.
import type { ValueUse } from '../../../contract/expression/results.ts';
import type { Bytes } from './bytes.ts';
import { EvaluationFailure } from './failure.ts';
import { encodeComponent, encodePath } from './percent.ts';

/** A value with as many marks as it has bytes. */
export interface Marked {
  readonly text: Bytes;
  readonly marks: string;
}

/** Written in a rule or made by a function, of a decoded path, of a path that is encoded already. */
export const PLAIN = '.';
export const DECODED = 'd';
export const RAW = 'r';

/** Fields that hold a path or a part of one, with the mark of their bytes. */
export const PATH_MARKS: Readonly<Record<string, string>> = {
  'http.request.uri.path': DECODED,
  'http.request.uri.path.extension': DECODED,
  'raw.http.request.uri.path': RAW,
};

export const marked = (text: Bytes, mark: string): Marked => ({ text, marks: mark.repeat(text.length) });

/** Bytes that end or divide a parameter of a query, or stand for another byte there. */
const DIVIDES_QUERY = /[&;=+]/;
/** Bytes that a rule must not write into a target. */
const isForbidden = (use: ValueUse, byte: Bytes) =>
  byte < ' ' || byte === '\x7f' || byte === '\\' || (use === 'redirect' && byte === ' ');

/** The target of a redirect or the encoded path of a rewrite. Throws EvaluationFailure unusable_result. */
export function encodedTarget(use: ValueUse, { text, marks }: Marked): Bytes {
  let inQuery = false;
  let target = '';
  for (const [at, byte] of [...text].entries()) {
    const mark = marks[at];
    if (mark === PLAIN && isForbidden(use, byte)) throw new EvaluationFailure('unusable_result');
    if (mark === PLAIN && use === 'redirect') {
      inQuery = byte !== '#' && (inQuery || byte === '?');
      target += byte;
    } else if (mark === RAW && byte === '%') target += byte;
    else target += mark === DECODED && inQuery && DIVIDES_QUERY.test(byte) ? encodeComponent(byte) : encodePath(byte);
  }
  return target;
}
