// One question at a time about the same thing, however many ask: whoever asks while a question is under way shares the next
// one. So an answer is never older than the asking, which a cache could not say.

interface Turn<T> {
  running: Promise<T>;
  /** Begins when the running one has ended. */
  next: Promise<T> | null;
}

export class SharedQuestions<T> {
  readonly #turns = new Map<string, Turn<T>>();
  readonly #ask: (key: string) => Promise<T>;

  constructor(ask: (key: string) => Promise<T>) {
    this.#ask = ask;
  }

  /** The answer to a question that began after this call. */
  ask(key: string): Promise<T> {
    const turn = this.#turns.get(key);
    if (!turn) return this.#begin(key);
    const begin = () => this.#begin(key);
    turn.next ??= turn.running.then(begin, begin);
    return turn.next;
  }

  #begin(key: string): Promise<T> {
    const turn: Turn<T> = { running: this.#ask(key), next: null };
    this.#turns.set(key, turn);
    const end = () => {
      if (turn.next === null) this.#turns.delete(key);
    };
    turn.running.then(end, end);
    return turn.running;
  }
}
