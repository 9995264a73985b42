// Runs the program of a pattern over bytes: each byte is looked at once by every thread, so the time is bounded by the
// product of both lengths, and by a budget below that. The leftmost match counts, and of those the preferred one.
import { WORD } from '../../../contract/expression/regex-escape.ts';
import type { Bytes } from './bytes.ts';
import { EvaluationFailure } from './failure.ts';
import type { Assertion, Program } from './regex-program.ts';

/** Steps of one match: some tenths of a second. */
const MAX_STEPS = 2_000_000;

/** Offsets where the match and its groups start and end; -1 for a group that took no part. */
export type Slots = readonly number[];

/** Told what a pattern has cost: its instructions, and the steps of its match. May throw, which ends the evaluation. */
export type Spend = (steps: number) => void;

/** Whether a part of the subject matches. Throws EvaluationFailure pattern_budget, and what `spend` throws. */
export function regexMatches(program: Program, subject: Bytes, spend?: Spend): boolean {
  return spending(new Machine(program, subject, false), spend) !== null;
}

/** Where the first match and its groups are; null without one. Throws as regexMatches does. */
export function regexFind(program: Program, subject: Bytes, spend?: Spend): Slots | null {
  return spending(new Machine(program, subject, true), spend);
}

function spending(machine: Machine, spend: Spend | undefined): Slots | null {
  try {
    return machine.run();
  } finally {
    spend?.(machine.program.instructions.length + machine.steps);
  }
}

/** Threads in the order in which they are preferred: where each is in the program, and what it has captured. */
interface Threads {
  readonly pcs: number[];
  readonly slots: Slots[];
}

const noThreads = (): Threads => ({ pcs: [], slots: [] });

class Machine {
  readonly program: Program;
  readonly subject: Bytes;
  /** Whether groups are of interest; else any match is as good as another. */
  readonly capturing: boolean;
  /** Per instruction, the last position at which a thread came to it. */
  readonly seen: Int32Array;
  /** Threads that wait to be added; emptied by each call of add. */
  readonly waiting = noThreads();
  steps = 0;

  constructor(program: Program, subject: Bytes, capturing: boolean) {
    this.program = program;
    this.subject = subject;
    this.capturing = capturing;
    this.seen = new Int32Array(program.instructions.length).fill(-1);
  }

  run(): Slots | null {
    const none: Slots = new Array<number>(this.capturing ? this.program.slots : 0).fill(-1);
    let threads = noThreads();
    let found: Slots | null = null;
    for (let at = 0; at <= this.subject.length; at++) {
      // A match that starts later counts less than all that are under way.
      if (!found) this.add(threads, 0, none, at);
      if (threads.pcs.length === 0 && found) break;
      const next = noThreads();
      const byte = this.subject.charCodeAt(at);
      for (let index = 0; index < threads.pcs.length; index++) {
        const pc = threads.pcs[index]!;
        const instruction = this.program.instructions[pc]!;
        if (instruction.op === 'match') {
          found = threads.slots[index]!;
          if (!this.capturing) return found;
          break;
        }
        const reads = instruction.op === 'byte' && at < this.subject.length && instruction.set.has(byte);
        if (reads) this.add(next, pc + 1, threads.slots[index]!, at + 1);
      }
      threads = next;
    }
    return found;
  }

  /** Adds what a thread at `at` comes to before it waits for a byte or has matched. */
  add(threads: Threads, start: number, captured: Slots, at: number): void {
    this.wait(start, captured);
    while (this.waiting.pcs.length > 0) {
      const pc = this.waiting.pcs.pop()!;
      const slots = this.waiting.slots.pop()!;
      if (this.seen[pc] === at) continue;
      this.seen[pc] = at;
      if (++this.steps > MAX_STEPS) throw new EvaluationFailure('pattern_budget');
      const instruction = this.program.instructions[pc]!;
      switch (instruction.op) {
        case 'jump':
          this.wait(instruction.to, slots);
          break;
        case 'split':
          this.wait(instruction.second, slots);
          this.wait(instruction.first, slots);
          break;
        case 'save':
          this.wait(pc + 1, this.capturing ? slots.with(instruction.slot, at) : slots);
          break;
        case 'assert':
          if (this.holds(instruction.assertion, at)) this.wait(pc + 1, slots);
          break;
        default:
          threads.pcs.push(pc);
          threads.slots.push(slots);
      }
    }
  }

  wait(pc: number, slots: Slots): void {
    this.waiting.pcs.push(pc);
    this.waiting.slots.push(slots);
  }

  holds(assertion: Assertion, at: number): boolean {
    if (assertion === 'start') return at === 0;
    if (assertion === 'end') return at === this.subject.length;
    return (this.isWord(at - 1) !== this.isWord(at)) === (assertion === 'boundary');
  }

  isWord(at: number): boolean {
    return at >= 0 && at < this.subject.length && WORD.has(this.subject.charCodeAt(at));
  }
}
