// Every comparison of the language: with which types it goes, and what it needs.
import type { ExpressionCapability } from './capabilities.ts';
import type { ValueType } from './tree.ts';

/** Another type than these answers this code. */
type Refusal = 'ordered_comparison' | 'string_operator';

export interface OperatorSpec {
  /** As it is written. */
  readonly text: string;
  readonly types: readonly ValueType[];
  readonly refusal?: Refusal;
  readonly needs: readonly ExpressionCapability[];
  readonly summary: string;
}

const ALL: readonly ValueType[] = ['string', 'number', 'boolean', 'ip'];

const every = (text: string, summary: string): OperatorSpec => ({ text, types: ALL, needs: [], summary });
const ordered = (text: string, summary: string): OperatorSpec => ({
  text,
  types: ['number'],
  refusal: 'ordered_comparison',
  needs: [],
  summary,
});
const ofStrings = (text: string, summary: string, needs: readonly ExpressionCapability[] = []): OperatorSpec => ({
  text,
  types: ['string'],
  refusal: 'string_operator',
  needs,
  summary,
});

const TABLE = {
  eq: every('eq', 'Equal: strings byte by byte; addresses when the literal equals or contains them.'),
  ne: every('ne', 'Not equal; true if the value is missing.'),
  lt: ordered('lt', 'Less than.'),
  le: ordered('le', 'Less than or equal.'),
  gt: ordered('gt', 'Greater than.'),
  ge: ordered('ge', 'Greater than or equal.'),
  contains: ofStrings('contains', 'Contains the literal, byte by byte.'),
  matches: ofStrings('matches', 'A part of the value matches the regular expression.'),
  wildcard: ofStrings('wildcard', 'The whole value matches the pattern; A to Z are case-insensitive.', ['rules-v3']),
  strict_wildcard: ofStrings('strict wildcard', 'The whole value matches the pattern, case-sensitive.', ['rules-v3']),
  in: every('in', 'Equal to one of the values in braces; for an address, also in the IP list named after $.'),
} as const satisfies Record<string, OperatorSpec>;

export type OperatorName = keyof typeof TABLE;

export const OPERATORS: Readonly<Record<OperatorName, OperatorSpec>> = TABLE;

const BY_FIRST_WORD = new Map(
  Object.entries<OperatorSpec>(TABLE).map(([name, { text }]) => [text.split(' ')[0]!, name as OperatorName]),
);

/** The operator that starts with a word; undefined when none does. */
export function operatorStartingWith(word: string): OperatorName | undefined {
  return BY_FIRST_WORD.get(word);
}

/** How the operators that go with a type are written. */
export function operatorsOf(type: ValueType): string[] {
  return Object.values<OperatorSpec>(OPERATORS)
    .filter(({ types }) => types.includes(type))
    .map(({ text }) => text);
}
