const LONGEST = 48;
const MOST = 3;

/** Up to three of the names that somebody may have meant, the most alike first. */
export function nearest(text: string, names: Iterable<string>): string[] {
  if (text.length > LONGEST) return [];
  const near = [...names].map((name) => ({ name, distance: distance(text.toLowerCase(), name) }));
  return near
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(name.length / 4)))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MOST)
    .map(({ name }) => name);
}

/** How many characters have to be put in, taken away or changed (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
