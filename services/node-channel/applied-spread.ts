/** A fleet of this size is answered at once: its changes are shown as applied without a delay. */
const AT_ONCE = 50;
const MS_PER_NODE = 1;
const LONGEST_MS = 2000;

/** Over which time the nodes of this process are to spread their reports of a change; about one a millisecond. */
export function appliedSpread(nodes: number): number {
  return Math.min(LONGEST_MS, Math.max(0, nodes - AT_ONCE) * MS_PER_NODE);
}
