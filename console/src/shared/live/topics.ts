// Which events concern a page. Pure.
import type { LiveEvent, LiveTopic } from '@contract/resources/live.ts';

/** Any of a topic, or one id of it: `nodes`, `nodes:<id>`. */
export type LiveFilter = LiveTopic | `${LiveTopic}:${string}`;

/** Whether one of the events is about one of these. An event without ids may be about any. */
export function concerns(filters: readonly LiveFilter[], events: readonly LiveEvent[]): boolean {
  return events.some(({ topic, ids }) =>
    filters.some((filter) => {
      if (filter === topic) return true;
      return filter.startsWith(`${topic}:`) && (ids === undefined || ids.includes(filter.slice(topic.length + 1)));
    }),
  );
}
