// Whether one condition holds wherever another does, as far as that can be seen from their form. What is not seen is not
// claimed.
import { formatTree } from '../../../contract/expression/format.ts';
import type { Condition, Literal } from '../../../contract/expression/tree.ts';
import { type Cidr, contains, parseCidr } from '../../../contract/scalars/cidr.ts';

/** A condition as alternatives, each a list of parts that all have to hold. */
type Alternatives = readonly (readonly Part[])[];

interface Part {
  readonly text: string;
  /** What it compares, and the values of which one has to be equal; null for any other condition. */
  readonly equals: { readonly operand: string; readonly values: readonly (Literal | Cidr)[] } | null;
}

/** A condition to be compared with others. */
export class Shape {
  readonly #alternatives: Alternatives;

  constructor(condition: Condition) {
    const either = condition.op === 'or' ? condition.children : [condition];
    this.#alternatives = either.map((each) => (each.op === 'and' ? each.children : [each]).map(partOf));
  }

  get isTrue(): boolean {
    return this.#alternatives.some((parts) => parts.every(({ text }) => text === 'true'));
  }

  /** Whether the other holds wherever this one does. */
  implies(other: Shape): boolean {
    return this.#alternatives.every((mine) =>
      other.#alternatives.some((theirs) => theirs.every((part) => mine.some((each) => partImplies(each, part)))),
    );
  }
}

function partOf(condition: Condition): Part {
  const text = formatTree(condition);
  if (condition.op !== 'eq' && condition.op !== 'in') return { text, equals: null };
  const { operand } = condition;
  const values = condition.op === 'in' ? condition.values : [condition.value];
  const compared = operand.type === 'ip' ? values.map((value) => parseCidr(String(value))!) : values;
  return { text, equals: { operand: formatTree(operand), values: compared } };
}

function partImplies(one: Part, other: Part): boolean {
  if (other.text === 'true' || one.text === 'false' || one.text === other.text) return true;
  if (!one.equals || !other.equals || one.equals.operand !== other.equals.operand) return false;
  const { values } = other.equals;
  return one.equals.values.every((value) => values.some((each) => isAmong(value, each)));
}

function isAmong(value: Literal | Cidr, other: Literal | Cidr): boolean {
  return typeof value === 'object' && typeof other === 'object' ? contains(other, value) : value === other;
}

/** Whether a condition holds for no request, as far as its form tells. */
export function isNever(condition: Condition): boolean {
  switch (condition.op) {
    case 'literal':
      return !condition.value;
    case 'not':
      return isAlways(condition.child);
    case 'and':
      return condition.children.some(isNever);
    case 'or':
      return condition.children.every(isNever);
    default:
      return false;
  }
}

function isAlways(condition: Condition): boolean {
  switch (condition.op) {
    case 'literal':
      return condition.value;
    case 'not':
      return isNever(condition.child);
    case 'and':
      return condition.children.every(isAlways);
    case 'or':
      return condition.children.some(isAlways);
    default:
      return false;
  }
}
