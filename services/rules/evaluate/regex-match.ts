// Runs the program of a pattern over bytes: each byte is looked at once by every thread, so the time is bounded by the
// product of both lengths, and by a budget below that. The leftmost match counts, and of those the preferred one.
import { WORD } from '../../../contract/expression/regex-escape.ts';
import type { Bytes } from './bytes.ts';
import { EvaluationFailure } from './failure.ts';
import type { Assertion, Program } from './regex-program.ts';

/** Steps of one match: some tenths of a second. */
const MAX_STEPS = 5_000_000;

/** Offsets where the match and its groups start and end; -1 for a group that took no part. */
export type Slots = readonly number[];

/** Whether a part of the subject matches. Throws EvaluationFailure pattern_budget. */
export function regexMatches(program: Program, subject: Bytes): boolean {
  return new Machine(program, subject, false).run() !== null;
}

/** Where the first match and its groups are; null without one. Throws EvaluationFailure pattern_budget. */
export function regexFind(program: Program, subject: Bytes): Slots | null {
  return new Machine(program, subject, true).run();
}

interface Thread {
  readonly pc: number;
  readonly slots: Slots;
}

class Machine {
  readonly program: Program;
  readonly subject: Bytes;
  /** Whether groups are of interest; else any match is as good as another. */
  readonly capturing: boolean;
  /** Per instruction, the last position at which a thread came to it. */
  readonly seen: Int32Array;
  steps = 0;

  constructor(program: Program, subject: Bytes, capturing: boolean) {
    this.program = program;
    this.subject = subject;
    this.capturing = capturing;
    this.seen = new Int32Array(program.instructions.length).fill(-1);
  }

  run(): Slots | null {
    const none: Slots = new Array<number>(this.capturing ? this.program.slots : 0).fill(-1);
    let threads: Thread[] = [];
    let found: Slots | null = null;
    for (let at = 0; at <= this.subject.length; at++) {
      // A match that starts later counts less than all that are under way.
      if (!found) this.add(threads, { pc: 0, slots: none }, at);
      if (threads.length === 0 && found) break;
      const next: Thread[] = [];
      for (const thread of threads) {
        const instruction = this.program.instructions[thread.pc]!;
        if (instruction.op === 'match') {
          if (!this.capturing) return thread.slots;
          found = thread.slots;
          break;
        }
        if (instruction.op !== 'byte' || at === this.subject.length) continue;
        if (instruction.set.has(this.subject.charCodeAt(at))) this.add(next, { ...thread, pc: thread.pc + 1 }, at + 1);
      }
      threads = next;
    }
    return found;
  }

  /** Adds the threads that wait for a byte at `at`, or have matched, in the order in which they are preferred. */
  add(threads: Thread[], thread: Thread, at: number): void {
    const stack = [thread];
    for (let top = stack.pop(); top; top = stack.pop()) {
      const { pc, slots } = top;
      if (this.seen[pc] === at) continue;
      this.seen[pc] = at;
      if (++this.steps > MAX_STEPS) throw new EvaluationFailure('pattern_budget');
      const instruction = this.program.instructions[pc]!;
      switch (instruction.op) {
        case 'jump':
          stack.push({ pc: instruction.to, slots });
          break;
        case 'split':
          stack.push({ pc: instruction.second, slots }, { pc: instruction.first, slots });
          break;
        case 'save':
          stack.push({ pc: pc + 1, slots: this.capturing ? slots.with(instruction.slot, at) : slots });
          break;
        case 'assert':
          if (this.holds(instruction.assertion, at)) stack.push({ pc: pc + 1, slots });
          break;
        default:
          threads.push(top);
      }
    }
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
