// A pattern of the subset as instructions for a machine that follows all its threads at once.
import type { ByteSet } from '../../../contract/expression/byte-set.ts';
import type { Regex, RegexNode } from '../../../contract/expression/regex.ts';

export type Assertion = 'start' | 'end' | 'boundary' | 'not_boundary';

export type Instruction =
  | { readonly op: 'byte'; readonly set: ByteSet }
  /** The first way is preferred. */
  | { readonly op: 'split'; first: number; second: number }
  | { readonly op: 'jump'; to: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'assert'; readonly assertion: Assertion }
  | { readonly op: 'match' };

export interface Program {
  readonly instructions: readonly Instruction[];
  /** Two for the whole match, and two for each group. */
  readonly slots: number;
}

/** The program of a pattern. A repetition is written out, so it has up to 1000 instructions for each byte of it. */
export function compileRegex({ node, groups }: Regex): Program {
  const instructions: Instruction[] = [];
  emitSaved(instructions, 0, node);
  instructions.push({ op: 'match' });
  return { instructions, slots: 2 * (groups + 1) };
}

/** How many instructions compileRegex makes of it. */
export function programSize({ node }: Regex): number {
  return sizeOf(node) + 3;
}

function sizeOf(node: RegexNode): number {
  switch (node.kind) {
    case 'repeat':
      return node.min + (node.max === null ? 3 : 2 * (node.max - node.min));
    case 'group':
      return sizeOf(node.node) + 2;
    case 'sequence':
      return node.nodes.reduce((sum, each) => sum + sizeOf(each), 0);
    case 'alternatives':
      return node.nodes.reduce((sum, each) => sum + sizeOf(each) + 2, -2);
    default:
      return 1;
  }
}

function emitSaved(out: Instruction[], index: number, node: RegexNode): void {
  out.push({ op: 'save', slot: 2 * index });
  emit(out, node);
  out.push({ op: 'save', slot: 2 * index + 1 });
}

function emit(out: Instruction[], node: RegexNode): void {
  switch (node.kind) {
    case 'byte':
      out.push({ op: 'byte', set: node.set });
      return;
    case 'repeat':
      emitRepeat(out, node);
      return;
    case 'group':
      emitSaved(out, node.index, node.node);
      return;
    case 'sequence':
      for (const child of node.nodes) emit(out, child);
      return;
    case 'alternatives':
      emitAlternatives(out, node.nodes);
      return;
    default:
      out.push({ op: 'assert', assertion: node.kind });
  }
}

function emitRepeat(out: Instruction[], { set, min, max, lazy }: RegexNode & { kind: 'repeat' }): void {
  for (let count = 0; count < min; count++) out.push({ op: 'byte', set });
  if (max === null) {
    const at = out.length;
    const split = { op: 'split' as const, first: at + 1, second: at + 3 };
    out.push(preferring(split, lazy), { op: 'byte', set }, { op: 'jump', to: at });
    return;
  }
  const end = out.length + 2 * (max - min);
  for (let count = min; count < max; count++) {
    const split = { op: 'split' as const, first: out.length + 1, second: end };
    out.push(preferring(split, lazy), { op: 'byte', set });
  }
}

function preferring(split: Instruction & { op: 'split' }, lazy: boolean): Instruction {
  return lazy ? { ...split, first: split.second, second: split.first } : split;
}

function emitAlternatives(out: Instruction[], nodes: readonly RegexNode[]): void {
  const jumps: (Instruction & { op: 'jump' })[] = [];
  for (const [index, node] of nodes.entries()) {
    if (index === nodes.length - 1) {
      emit(out, node);
      continue;
    }
    const split: Instruction = { op: 'split', first: out.length + 1, second: 0 };
    const jump = { op: 'jump' as const, to: 0 };
    out.push(split);
    emit(out, node);
    out.push(jump);
    split.second = out.length;
    jumps.push(jump);
  }
  for (const jump of jumps) jump.to = out.length;
}
