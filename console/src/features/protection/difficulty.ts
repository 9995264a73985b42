// How long a proof of work keeps a visitor's device busy. Pure.

/** Measured in one worker of a common computer; a phone of the middle class is about six times slower. */
const TRIES_PER_SECOND = { desktop: 3_000_000, phone: 500_000 } as const;

/** Beyond this, people on phones leave before they are through. */
export const LONG_BITS = 22;

/** Mean seconds until an answer of so many leading zero bits is found. */
export function expectedSeconds(bits: number, device: keyof typeof TRIES_PER_SECOND): number {
  return 2 ** bits / TRIES_PER_SECOND[device];
}
