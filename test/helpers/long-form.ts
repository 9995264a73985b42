// Tests with a long form: `npm test` runs what stands for the rest, `npm run test:long` all of it.

const LONG_FORM = process.env.TEST_LONG === '1';

/** In the long form all; otherwise those that stand for the others. */
export function orAll<T>(all: readonly T[], few: (one: T) => boolean): readonly T[] {
  return LONG_FORM ? all : all.filter(few);
}

/** In the long form `long`. */
export function orLong<T>(short: T, long: T): T {
  return LONG_FORM ? long : short;
}

/** Tests that the long form alone has. */
export function inLongForm(define: () => void): void {
  if (LONG_FORM) define();
}
