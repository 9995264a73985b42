// Publishes platform-wide changes cluster by cluster after their commit: each in its own short transaction, so that a
// slow holder of one cluster's lock delays that cluster only.
import { publishPending } from '../models/config/publish-requests.ts';
import type { Call } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { write } from '../runtime/write.ts';

/** How long an action waits for its own publications; the leader's job finishes what is left. */
const WAIT_MS = 2000;
const PARALLEL = 4;
const BATCH = 20;
/** Changes named in an answer: they travel in one header. */
const MAX_ANNOUNCED = 100;

/**
 * Publishes the pending requests of the clusters that requestPublication answered, waiting up to 2 s in total. Adds
 * the revisions made in time to the call's changes, the first hundred. Never throws: what fails or is late stays requested.
 */
export async function publishRequested(runtime: Runtime, call: Call, clusterIds: readonly string[]): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  const queue = [...clusterIds];
  let answered = false;
  const worker = async () => {
    for (let clusterId = queue.shift(); clusterId !== undefined; clusterId = queue.shift()) {
      if (Date.now() >= deadline) return;
      const changes = await publishClusterRequests(runtime, call, clusterId).catch((error: unknown) => {
        runtime.log.warn({ err: error, clusterId }, 'requested publication failed, will be retried');
        return [];
      });
      if (!answered && call.changes.length < MAX_ANNOUNCED) call.changes.push(...changes);
    }
  };
  const all = Promise.all(Array.from({ length: Math.min(PARALLEL, queue.length) }, worker));
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([all, new Promise((resolve) => (timer = setTimeout(resolve, WAIT_MS)))]);
  clearTimeout(timer);
  answered = true;
}

/** Publishes all pending requests of one cluster; answers the revisions made as `<cluster>=<number>`. */
export async function publishClusterRequests(runtime: Runtime, call: Call, clusterId: string): Promise<string[]> {
  // A claim of idempotency was completed with the change itself.
  const own: Call = { ...call, idempotency: null, changes: [] };
  for (;;) {
    const count = await write(runtime, own, { clusterId }, (tx) => publishPending(tx, clusterId, BATCH));
    if (count < BATCH) return own.changes;
  }
}
