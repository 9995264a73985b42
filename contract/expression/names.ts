// Names in brackets: of headers, cookies and parameters of the query.
import type { ExpressionErrorCode } from './errors.ts';
import { MAX_NAME } from './limits.ts';

export type NameKind = 'header' | 'cookie' | 'argument';

const TOKEN = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]$/;
const ARGUMENT = /^[\x20-\x7e]$/;
const NOT_IN_ARGUMENTS = '"#&=';

const CODES: Readonly<Record<NameKind, ExpressionErrorCode>> = {
  header: 'header_name',
  cookie: 'cookie_name',
  argument: 'argument_name',
};

function canStand(kind: NameKind, character: string): boolean {
  return kind === 'argument'
    ? ARGUMENT.test(character) && !NOT_IN_ARGUMENTS.includes(character)
    : TOKEN.test(character);
}

/** Index of the first character that a name cannot have there; its length when it is empty, -1 when nothing is wrong. */
export function wrongInName(kind: NameKind, name: string): number {
  if (name === '') return 0;
  for (let index = 0; index < name.length; index++) {
    if (index === MAX_NAME || !canStand(kind, name[index]!)) return index;
  }
  return -1;
}

/** The code that a bad name of this kind answers. */
export function nameErrorOf(kind: NameKind): ExpressionErrorCode {
  return CODES[kind];
}
