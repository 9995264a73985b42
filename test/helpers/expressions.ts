// Random sources of the rule language that are valid, made from the tables that the checker has.
import fc from 'fast-check';
import { FIELDS } from '../../contract/expression/fields.ts';
import { type ArgumentSpec, FUNCTIONS } from '../../contract/expression/functions.ts';
import { OPERATORS } from '../../contract/expression/operators.ts';
import type { ValueType } from '../../contract/expression/tree.ts';

type Source = fc.Arbitrary<string>;

const TYPES: readonly ValueType[] = ['string', 'number', 'boolean', 'ip'];
const blank = fc.constantFrom(' ', '  ', '\n', ' \t ');
const name = fc.constantFrom('a', 'session', 'x-y', 'Accept');
const quoted = (value: string) => JSON.stringify(value);
/** Short texts of few letters, so that comparisons are true now and then. */
const text: Source = fc
  .oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', 'é', '\n', '"', '\\', '😀'), maxLength: 6 }),
    fc.constantFrom('/admin', 'www'),
  )
  .map(quoted);
const integer: Source = fc.oneof(fc.integer({ min: -3, max: 9 }), fc.maxSafeInteger()).map(String);
const address: Source = fc.oneof(
  fc.ipV4(),
  fc.ipV6().filter((each) => !/^(0*:){5}ffff:|^::ffff:/i.test(each)),
  fc.constantFrom('10.0.0.0/8', '192.0.2.1', '::ffff:192.0.2.1', '2001:db8::/32', '::/0'),
);
const LITERALS: Readonly<Record<ValueType, Source>> = {
  string: text,
  number: integer,
  boolean: fc.constantFrom('true', 'false'),
  ip: address,
};

/** Patterns of the subset. */
export const pattern: Source = fc
  .array(
    fc.constantFrom(
      'a',
      'b',
      '/',
      '.',
      '\\d',
      '\\w+',
      '[a-z]*',
      '[^/]',
      '(a|b)',
      '(x)',
      'a{1,2}',
      '^',
      '$',
      '\\b',
      '.*?',
      '|',
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''));
export const glob: Source = fc
  .array(fc.constantFrom('a', 'b', '/', '*', '\\*', '\\\\', 'É'), { maxLength: 6 })
  .map((parts) => parts.join(''));

const fieldOf = (type: ValueType): Source =>
  fc
    .constantFrom(...[...FIELDS].filter(([, spec]) => spec.type === type && spec.phases === 'all'))
    .chain(([field, spec]) => (spec.name ? name.map((each) => `${field}[${quoted(each)}]`) : fc.constant(field)));

function argument(spec: ArgumentSpec, depth: number): Source {
  switch (spec.kind) {
    case 'string':
      return fc.oneof(text, operand('string', depth));
    case 'any':
      return fc.oneof(
        text,
        fc.constantFrom(...TYPES).chain((type) => operand(type, depth)),
      );
    case 'integer':
      return fc.integer({ min: Math.max(-9, spec.min), max: 9 }).map(String);
    case 'pattern':
      return pattern.map(quoted);
    case 'glob':
      return glob.map(quoted);
    case 'replacement':
      return fc.constantFrom('', '/x', '$', 'é').map(quoted);
    case 'flags':
      return fc.constant('"s"');
  }
}

function callOf(type: ValueType, depth: number): Source {
  const specs = [...FUNCTIONS.values()].filter(({ returns, valueOnly }) => returns === type && !valueOnly);
  if (specs.length === 0 || depth === 0) return fieldOf(type);
  return fc
    .constantFrom(...specs)
    .chain((spec) =>
      fc
        .integer({ min: spec.required, max: spec.args.length })
        .chain((count) =>
          fc
            .tuple(...spec.args.slice(0, count).map((each) => argument(each, depth - 1)))
            .map((args) => `${spec.function}(${args.join(', ')})`),
        ),
    );
}

const operand = (type: ValueType, depth: number): Source =>
  depth === 0
    ? fieldOf(type)
    : fc.oneof({ weight: 2, arbitrary: fieldOf(type) }, { weight: 1, arbitrary: callOf(type, depth) });

const operators = Object.entries(OPERATORS);

const comparison: Source = fc.constantFrom(...operators).chain(([operator, { text: written, types }]) =>
  fc.constantFrom(...types).chain((type) => {
    const literal =
      operator === 'matches'
        ? pattern.map(quoted)
        : operator.endsWith('wildcard')
          ? glob.map(quoted)
          : operator === 'in'
            ? fc.array(LITERALS[type], { minLength: 1, maxLength: 5 }).map((values) => `{${values.join(' ')}}`)
            : LITERALS[type];
    return fc
      .tuple(operand(type, 2), blank, literal)
      .map(([left, space, right]) => `${left}${space}${written} ${right}`);
  }),
);

const leaf: Source = fc.oneof(
  { weight: 8, arbitrary: comparison },
  { weight: 1, arbitrary: fc.constantFrom('true', 'false') },
  { weight: 1, arbitrary: callOf('boolean', 2) },
  { weight: 1, arbitrary: fc.constant('ip.src in $office') },
);

function conditionOf(depth: number): Source {
  if (depth === 0) return leaf;
  const inner = conditionOf(depth - 1);
  return fc.oneof(
    leaf,
    fc.tuple(blank, inner).map(([space, child]) => `not${space}(${child})`),
    fc
      .tuple(inner, blank, fc.constantFrom('and', 'or'), inner)
      .map(([a, space, op, b]) => `(${a})${space}${op} (${b})`),
    fc.tuple(inner, fc.constantFrom('and', 'or'), inner).map(([a, op, b]) => `${a} ${op} ${b}`),
  );
}

/** Conditions of rules that look at requests, in all shapes. */
export const conditions: Source = conditionOf(3);

/** Value expressions, also with the functions that only they have. */
export const values: Source = fc.oneof(
  text,
  operand('string', 3),
  fc.tuple(operand('string', 1), pattern).map(([s, each]) => `regex_replace(${s}, ${quoted(each)}, "-")`),
  fc.tuple(operand('string', 1), glob).map(([s, each]) => `wildcard_replace(${s}, ${quoted(each)}, "-", "s")`),
);
