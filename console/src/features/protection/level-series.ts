// The level of a site over time, out of its events: the highest of all nodes at each change. Pure.
import { LEVELS, type Level } from '../../../../contract/scalars/challenge.ts';

export interface LevelChange {
  occurredAt: string;
  level: Level;
  previousLevel: Level;
  node: { id: string } | null;
}

export interface LevelSeries {
  /** Milliseconds, rising. */
  times: number[];
  /** Numbers of LEVELS; each holds until the next. */
  values: number[];
}

const numberOf = (level: Level) => LEVELS.indexOf(level);

/**
 * Changes of levels, in any order, between two times. What a node had before its first change is what that change came
 * from; nodes without a change had their present level all the time.
 */
export function levelSeries(
  changes: readonly LevelChange[],
  nodes: readonly { id: string; level: Level }[],
  from: number,
  to: number,
): LevelSeries {
  const known = changes
    .map((change) => ({ ...change, at: Date.parse(change.occurredAt), key: change.node?.id ?? '' }))
    .filter(({ at }) => at >= from && at <= to)
    .sort((a, b) => a.at - b.at);
  const levels = new Map(nodes.map(({ id, level }) => [id, numberOf(level)]));
  for (const change of known.toReversed()) levels.set(change.key, numberOf(change.previousLevel));
  const highest = () => Math.max(0, ...levels.values());
  const series: LevelSeries = { times: [from], values: [highest()] };
  for (const { at, key, level } of known) {
    levels.set(key, numberOf(level));
    const last = series.times.length - 1;
    if (series.times[last] === at) series.values[last] = highest();
    else if (series.values[last] !== highest()) {
      series.times.push(at);
      series.values.push(highest());
    }
  }
  if (series.times.at(-1) !== to) {
    series.times.push(to);
    series.values.push(highest());
  }
  return series;
}
