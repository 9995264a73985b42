// What an evaluation read, for whoever tries a rule.
import { formatField } from '../../../contract/expression/format.ts';
import { OPERATORS, type OperatorName } from '../../../contract/expression/operators.ts';
import type { Tree } from '../../../contract/expression/tree.ts';
import { MAX_READS, type Read } from '../../../contract/scalars/rule-trace.ts';
import type { FieldValue } from '../evaluate/evaluate.ts';
import { shown } from './shown.ts';

/** Collects the values of one rule; all rules share how many are shown. */
export class Reads {
  readonly shown: Read[] = [];
  leftOut = 0;
  readonly #room: { left: number };

  constructor(room: { left: number }) {
    this.#room = room;
  }

  add(part: string, node: Tree, value: FieldValue): void {
    if (this.#room.left === 0) {
      this.leftOut++;
      return;
    }
    this.#room.left--;
    const { at, end } = node;
    this.shown.push({ part, at, end, ...named(node), value: shown(value) });
  }
}

/** Room for all values of a run. */
export const roomForReads = () => ({ left: MAX_READS });

function named(node: Tree): Pick<Read, 'kind' | 'name' | 'type'> {
  switch (node.op) {
    case 'field':
      return { kind: 'field', name: formatField(node), type: node.type };
    case 'call':
      return { kind: 'function', name: node.function, type: node.type };
    default:
      return { kind: 'condition', name: OPERATORS[node.op as OperatorName]?.text ?? node.op, type: 'boolean' };
  }
}
