// Hints made into events: one per topic, each id once. Pure.
import { LIVE_TOPICS, type LiveEvent, type LiveTopic, MAX_LIVE_IDS } from '../contract/resources/live.ts';

const TOPICS: ReadonlySet<string> = new Set(LIVE_TOPICS);

/** Merges hints in any number; of more than 100 ids of a topic, the topic alone is left. Unknown topics are of a later version. */
export function mergeHints(hints: Iterable<string>): LiveEvent[] {
  // null: any of the topic.
  const merged = new Map<LiveTopic, Set<string> | null>();
  for (const hint of hints) {
    const space = hint.indexOf(' ');
    const topic = (space < 0 ? hint : hint.slice(0, space)) as LiveTopic;
    if (!TOPICS.has(topic)) continue;
    if (space < 0) merged.set(topic, null);
    else {
      const ids = merged.get(topic);
      if (ids === undefined) merged.set(topic, new Set([hint.slice(space + 1)]));
      else if (ids !== null && ids.add(hint.slice(space + 1)).size > MAX_LIVE_IDS) merged.set(topic, null);
    }
  }
  return [...merged].map(([topic, ids]) => (ids === null ? { topic } : { topic, ids: [...ids] }));
}

/** The same as hints again: what a stream's entry carries is bounded. */
export function boundedHints(hints: Iterable<string>): string[] {
  return mergeHints(hints).flatMap(({ topic, ids }) => ids?.map((id) => `${topic} ${id}`) ?? [topic]);
}
