// A prefetch: the console names the URLs, Caddy fetches them.
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { PrefetchStateSchema, PrefetchTaskInputSchema } from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import type { TaskKind } from '../tasks/task-kind.ts';
import { prefetchPart } from './prefetch.part.ts';

/** Of the whole; the lease is longer. */
const BUDGET_MS = 4 * 60_000;
const CALL_MS = 30_000;

export const prefetchTask: TaskKind = {
  name: 'prefetch',
  make: (node) => {
    const { client } = node.of(prefetchPart);
    return async (input, signal, progress) => {
      const { cacheTaskId } = fromBinary(PrefetchTaskInputSchema, input);
      const prefetch = await node.channel()?.getPrefetch(cacheTaskId, { timeoutMs: CALL_MS, signal });
      let last = new Uint8Array();
      // The sites may be gone, or disabled, by now.
      if (!prefetch || prefetch.urls.length === 0) return last;
      for await (const state of client.prefetch({ prefetch, budgetMs: BUDGET_MS }, signal)) {
        if (last.length > 0) progress(last);
        last = toBinary(PrefetchStateSchema, state);
      }
      if (last.length === 0 && signal.aborted) throw new Error('the prefetch was ended');
      return last;
    };
  },
};
