// Has the console create the tasks of PURGE requests that Caddy took, and tells Caddy what became of them.
import { create } from '@bufbuild/protobuf';
import type { PurgeRequest } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type SubmitPurgeResponse, SubmitPurgeResponseSchema } from '../../../proto/gen/svc/node/v1/purges_pb.js';
import { backoffDelay, sleep } from '../../kit/backoff.ts';
import type { NodeChannel } from '../../kit/channel-client.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';

/** Shorter than Caddy's wait. */
const CALL_MS = 30_000;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 2000;

export interface PurgeDeskOptions {
  client: Pick<EdgeClient, 'watchPurgeRequests' | 'answerPurgeRequest'>;
  /** The connection while the console responds. */
  channel: () => Pick<NodeChannel, 'submitPurge'> | undefined;
  log: Log;
  stopping: AbortSignal;
}

/** Runs until the agent stops. */
export async function servePurgeRequests({ client, channel, log, stopping }: PurgeDeskOptions): Promise<void> {
  for (let failures = 0; !stopping.aborted; ) {
    try {
      for await (const request of client.watchPurgeRequests(stopping)) {
        failures = 0;
        // Caddy bounds how many wait.
        void serve(request);
      }
    } catch {
      // Caddy is not there, or is an older one.
    }
    await sleep(backoffDelay(failures++, Math.random, MIN_RETRY_MS, MAX_RETRY_MS), stopping);
  }

  async function serve({ id, purge }: PurgeRequest): Promise<void> {
    const answer = await submit(purge);
    // Where it fails Caddy has ended the client's wait.
    await client.answerPurgeRequest({ id, answer }).catch(() => undefined);
  }

  async function submit(purge: PurgeRequest['purge']): Promise<SubmitPurgeResponse> {
    try {
      const console = channel();
      if (purge && console) return await console.submitPurge(purge, { timeoutMs: CALL_MS, signal: stopping });
    } catch (error) {
      log.warn('PURGE request not handed to the console', { siteId: purge?.siteId, error: errorText(error) });
    }
    return create(SubmitPurgeResponseSchema, { refusal: 'purge-unavailable' });
  }
}
