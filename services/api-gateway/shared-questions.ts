// One question at a time about the same thing, however many ask: whoever asks while a question is under way shares the next
// one. So an answer is never older than the asking, which a cache could not say.

interface Turn<T> {
  running: Promise<T>;
  /** Begins when the running one has ended. */
  next: Promise<T> | null;
}

export class SharedQuestions<T> {
  readonly #turns = new Map<string, Turn<T>>();

  /** The answer to a question that began after this call. */
  ask(key: string, question: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key);
    if (!turn) return this.#begin(key, question);
    const begin = () => this.#begin(key, question);
    turn.next ??= turn.running.then(begin, begin);
    return turn.next;
  }

  #begin(key: string, question: () => Promise<T>): Promise<T> {
    const turn: Turn<T> = { running: question(), next: null };
    this.#turns.set(key, turn);
    const end = () => {
      if (turn.next === null) this.#turns.delete(key);
    };
    turn.running.then(end, end);
    return turn.running;
  }
}
