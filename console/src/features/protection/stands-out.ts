interface Heavy {
  count: number;
}

/**
 * Whether one of the heaviest weighs so much that a ban suggests itself: a fourth of the first at least, and three times
 * what is usual in the list. In a list of two or one nothing is usual.
 */
export function standsOut(one: Heavy, items: readonly Heavy[]): boolean {
  const counts = items.map(({ count }) => count).sort((a, b) => b - a);
  const [first = 0] = counts;
  if (one.count * 4 < first) return false;
  return counts.length < 3 || one.count >= 3 * counts[Math.ceil((counts.length - 1) / 2)]!;
}
