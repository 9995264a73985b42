// Random expressions with values of fields for them, to compare two evaluations of the same. Literals are made from the
// values that they meet half of the time, so that every operator is true often; values are missing, are no UTF-8, and
// have line ends in them now and then.
import { FIELDS, type FieldName } from '../../contract/expression/fields.ts';
import { type ArgumentSpec, FUNCTIONS } from '../../contract/expression/functions.ts';
import { sortedSet } from '../../contract/expression/literals.ts';
import { OPERATORS, type OperatorName } from '../../contract/expression/operators.ts';
import type {
  Argument,
  Condition,
  FieldNode,
  Literal,
  Operand,
  TextNode,
  ValueType,
} from '../../contract/expression/tree.ts';
import { type Cidr, formatAddress, formatCidr, isSingleAddress, parseCidr } from '../../contract/scalars/cidr.ts';
import { evaluateValue, type FieldValue } from '../../services/rules/evaluate/evaluate.ts';
import { globFor, partOf, patternFor, rangeFor, textOf } from './expression-literals.ts';
import { givenFields } from './given-fields.ts';
import type { Random } from './random.ts';

export const PAIR_LISTS: Readonly<Record<string, readonly string[]>> = {
  office: ['192.0.2.0/24', '2001:db8::/32', '10.0.0.1/32'],
  none: [],
};

export type GivenFields = Record<string, string | number | boolean>;

const NOWHERE = { at: 0, end: 0 };
const NAMES = ['a', 'x-b'];
const TYPES: readonly ValueType[] = ['string', 'number', 'boolean', 'ip'];
const TEXTS = [
  'a',
  'b',
  'ab',
  '/admin/x.php',
  'WWW.Example.com',
  'é',
  '😀',
  'a=1&b=2',
  'YWI=',
  '%41+b',
  '*',
  '\\',
  'a_b',
  '"',
];
const BYTES = [
  ...TEXTS.map((text) => Buffer.from(text, 'utf8').toString('latin1')),
  '\xff',
  'a\xfeb',
  '\n',
  'a\r\nb',
  '\x00',
];
const ADDRESSES = ['192.0.2.7', '10.0.0.1', '203.0.113.9', '2001:db8::1', '::1'];
/** What to add to a number so that it compares as true with the number itself. */
const BESIDE: Partial<Record<OperatorName, number>> = { lt: 1, gt: -1 };
const NUMBERS = [0, 1, 2, 80, 443, 200, 404, 64_496, 1_800_000_000];

/** Values of some of the fields; the others are missing. */
export function randomFields(random: Random): GivenFields {
  const given: GivenFields = {};
  for (const [field, { type, name }] of FIELDS) {
    for (const each of name ? NAMES : [null]) {
      if (random.chance(0.15)) continue;
      given[each === null ? field : `${field}[${each}]`] =
        type === 'string'
          ? random.some(1, 3, () => random.of(BYTES)).join('')
          : type === 'number'
            ? random.of(NUMBERS)
            : type === 'boolean'
              ? random.chance(0.5)
              : random.of(ADDRESSES);
    }
  }
  return given;
}

/** Makes trees for one set of values. Not each is valid: some have more than the limits allow. */
export class TreeMaker {
  readonly random: Random;
  readonly given: GivenFields;

  constructor(random: Random, given: GivenFields) {
    this.random = random;
    this.given = given;
  }

  condition(depth = 3): Condition {
    const { random } = this;
    if (depth > 0 && random.chance(0.5)) {
      if (random.chance(0.25)) return { ...NOWHERE, op: 'not', child: this.condition(depth - 1) };
      const op = random.of(['and', 'or'] as const);
      const children = random.some(2, 3, () => this.condition(depth - 1));
      return { ...NOWHERE, op, children: children.flatMap((child) => (child.op === op ? child.children : [child])) };
    }
    if (random.chance(0.03)) return { ...NOWHERE, op: 'literal', value: random.chance(0.5) };
    return this.comparison(random.of(Object.keys(OPERATORS) as OperatorName[]));
  }

  /** A comparison with this operator, of a field or function. */
  comparison(op: OperatorName): Condition {
    const { random } = this;
    if (op === 'in' && random.chance(0.2)) {
      const operand = this.field(random.of(['ip.src', 'ip.peer']));
      return { ...NOWHERE, op: 'in_list', operand, list: random.chance(0.8) ? 'office' : 'none' };
    }
    const operand = this.operand(random.of(OPERATORS[op].types), random.chance(0.4) ? 2 : 0);
    const value = this.valueOf(operand);
    if (op !== 'in') return { ...NOWHERE, op, operand, value: this.literal(op, value, operand.type) };
    const values = random.some(1, 4, () => this.literal('eq', value, operand.type));
    return { ...NOWHERE, op, operand, values: sortedSet(values, operand.type) };
  }

  /** A value expression: a text, a field, a function, or a replacement by a pattern. */
  value(): TextNode | Operand {
    const { random } = this;
    if (random.chance(0.05)) return this.text();
    if (random.chance(0.6)) return this.operand('string', 3);
    const subject = this.operand('string', 1);
    const bytes = this.valueOf(subject);
    const regex = random.chance(0.5);
    const name = regex ? 'regex_replace' : 'wildcard_replace';
    const made = typeof bytes === 'string' && random.chance(0.7);
    const pattern = regex ? (made ? patternFor(random, bytes) : '(a)b*') : made ? globFor(random, bytes, true) : 'a*';
    const captures = regex
      ? (pattern.match(/\(/g) ?? []).length
      : (pattern.replaceAll(/\\./g, '').match(/\*/g) ?? []).length;
    const replacement = captures > 0 ? `<\${1}>\${${1 + random.below(Math.min(captures, 8))}}` : '$é';
    const args: Argument[] = [subject, this.text(pattern), this.text(replacement)];
    if (!regex && random.chance(0.5)) args.push(this.text('s'));
    return { ...NOWHERE, op: 'call', function: name, type: 'string', args };
  }

  private operand(type: ValueType, depth: number): Operand {
    const { random } = this;
    const functions = [...FUNCTIONS.values()].filter(({ returns, valueOnly }) => returns === type && !valueOnly);
    if (depth === 0 || functions.length === 0 || random.chance(0.3)) return this.fieldOf(type);
    const spec = random.of(functions);
    const count = spec.required + random.below(spec.args.length - spec.required + 1);
    const args = spec.args.slice(0, count).map((each) => this.argument(each, depth - 1));
    return { ...NOWHERE, op: 'call', function: spec.function, type, args };
  }

  private argument(spec: ArgumentSpec, depth: number): Argument {
    const { random } = this;
    if (spec.kind === 'integer') return { ...NOWHERE, op: 'integer', value: Math.max(spec.min, random.below(12) - 4) };
    if (random.chance(0.3)) return this.text();
    return this.operand(spec.kind === 'any' ? random.of(TYPES) : 'string', depth);
  }

  private text(value: string = this.random.of(TEXTS)): TextNode {
    return { ...NOWHERE, op: 'text', value };
  }

  private fieldOf(type: ValueType): FieldNode {
    return this.field(this.random.of([...FIELDS.values()].filter((each) => each.type === type)).field);
  }

  private field(field: FieldName): FieldNode {
    const { type, name } = FIELDS.get(field)!;
    return { ...NOWHERE, op: 'field', field, name: name ? this.random.of(NAMES) : null, type };
  }

  /** What the operand is for the given values; undefined when that fails. */
  private valueOf(operand: Operand): FieldValue | undefined {
    const result = evaluateValue(operand, givenFields(this.given, PAIR_LISTS));
    return result.ok ? (result.value as FieldValue) : undefined;
  }

  /** A literal for an operator and what it meets; of a little more than half, one that makes it true. */
  private literal(op: OperatorName, value: FieldValue | undefined, type: ValueType): Literal {
    const fitting = this.random.chance(0.6) && value !== undefined && value !== null;
    switch (type) {
      case 'string':
        return this.textFor(op, fitting ? (value as string) : this.random.of(BYTES));
      case 'number':
        return fitting ? (value as number) + (BESIDE[op] ?? 0) : this.random.of(NUMBERS);
      case 'boolean':
        return fitting ? (value as boolean) : this.random.chance(0.5);
      case 'ip': {
        const cidr = parseCidr(fitting ? rangeFor(this.random, value as Cidr) : this.random.of(ADDRESSES))!;
        return isSingleAddress(cidr) ? formatAddress(cidr) : formatCidr(cidr);
      }
    }
  }

  private textFor(op: OperatorName, bytes: string): string {
    const { random } = this;
    const text = textOf(bytes) ?? random.of(TEXTS);
    if (op === 'matches') return patternFor(random, bytes);
    if (op === 'wildcard' || op === 'strict_wildcard') return globFor(random, bytes, op === 'wildcard');
    return op === 'contains' ? partOf(random, text) : text;
  }
}
