// The tokens of one source, read one after the other, and what has been counted of it.
import { refuse } from './errors.ts';
import type { FunctionName } from './functions.ts';
import { refuseWrong, type Token, tokensOf } from './lexer.ts';
import { MAX_NESTING, MAX_SOURCE_NODES, MAX_TREE_NODES } from './limits.ts';
import type { Phase } from './phases.ts';

export interface Context {
  readonly phase: Phase;
  /** Whether functions that compute values may stand in it. */
  readonly value: boolean;
  /** Names of the IP lists that there are; without it any name is taken. */
  readonly lists: ReadonlySet<string> | undefined;
}

export class Reader {
  readonly source: string;
  readonly context: Context;
  /** Functions of which one expression has one at most. */
  readonly once = new Set<FunctionName>();
  #tokens: readonly Token[];
  #index = 0;
  #sourceNodes = 0;
  #treeNodes = 0;
  #nesting = 0;

  constructor(source: string, context: Context) {
    this.source = source;
    this.context = context;
    this.#tokens = tokensOf(source);
  }

  /** The next token, which stays. Throws ExpressionFault where the lexer found something wrong. */
  peek(): Token {
    const token = this.#tokens[this.#index]!;
    return token.kind === 'wrong' ? refuseWrong(token) : token;
  }

  /** The next token, taken; the end is never taken. */
  take(): Token {
    const token = this.peek();
    if (token.kind !== 'end') this.#index++;
    return token;
  }

  /** Where the last taken token ends. */
  get end(): number {
    return this.#tokens[this.#index - 1]?.end ?? 0;
  }

  /** Whether the next token is this sign or word. */
  next(text: string): boolean {
    const token = this.peek();
    return (token.kind === 'sign' || token.kind === 'word') && token.text === text;
  }

  /** Takes a sign or word, or refuses: expected_token, unexpected_end. */
  expect(text: string): Token {
    if (this.next(text)) return this.take();
    const token = this.peek();
    if (token.kind === 'end') this.refuseEnd([text]);
    return refuse('expected_token', token.at, { token: text });
  }

  /** Refuses what comes next: unexpected_end at the end, else unexpected_token. */
  refuseNext(accepted: readonly string[]): never {
    const token = this.peek();
    if (token.kind === 'end') return this.refuseEnd(accepted);
    return refuse('unexpected_token', token.at, {}, accepted);
  }

  refuseEnd(accepted: readonly string[]): never {
    return refuse('unexpected_end', this.source.length, {}, accepted);
  }

  /** Counts a condition, function or argument that stands at `at`. Throws ExpressionFault too_complex. */
  count(at: number): void {
    if (++this.#sourceNodes > MAX_SOURCE_NODES) refuse('too_complex', at);
    this.countInTree(at);
  }

  /** Counts what only the tree has: `not`, `and`, `or`. Throws ExpressionFault too_complex. */
  countInTree(at: number): void {
    if (++this.#treeNodes > MAX_TREE_NODES) refuse('too_complex', at);
  }

  /** Reads what stands in a parenthesis or after `not`; checked before anything calls itself. Throws too_complex. */
  nested<T>(at: number, read: () => T): T {
    if (++this.#nesting > MAX_NESTING) refuse('too_complex', at);
    const result = read();
    this.#nesting--;
    return result;
  }
}
