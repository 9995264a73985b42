// What a node reports of a prefetch -> its result in the API. Nodes are authenticated, not trusted.
import { fromBinary } from '@bufbuild/protobuf';
import type { CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import { type PrefetchState, PrefetchStateSchema } from '../../proto/gen/svc/node/v1/tasks_pb.js';
import { type NamedNode, resultOf } from './node-result.ts';

const CODES = ['prefetch_failed', 'prefetch_timeout', 'sitemap_failed', 'sitemap_empty'] as const;
type Code = (typeof CODES)[number];
const REASONS = ['status', 'connect_failed', 'timeout', 'https_unsupported', 'invalid', 'too_large', 'other'];
const MAX_URL = 2048;

/** Throws for bytes that are no state. */
export function readState(output: Uint8Array): PrefetchState {
  return fromBinary(PrefetchStateSchema, output);
}

/** The result while it goes on. */
export function progress(node: NamedNode, output: Uint8Array | null): CacheTaskNode {
  return resultOf(node, 'running', output ? countsOf(readState(output)) : {});
}

export function finished(node: NamedNode, state: PrefetchState, at: Date): CacheTaskNode {
  const counts = { ...countsOf(state), finishedAt: at.toISOString() };
  if (state.code === '') return resultOf(node, 'succeeded', counts);
  const code = CODES.find((one) => one === state.code) ?? 'prefetch_failed';
  return resultOf(node, 'failed', { ...counts, ...described(code, state) });
}

/** The result of a node that never reported an end. */
export function timedOut(node: NamedNode, output: Uint8Array | null, at: Date): CacheTaskNode {
  const counts = output ? countsOf(readState(output)) : { succeeded: 0, failed: 0 };
  const done = counts.succeeded + counts.failed;
  const total = output ? readState(output).total : 0;
  return resultOf(node, 'failed', {
    ...counts,
    finishedAt: at.toISOString(),
    ...timeout(done, total),
  });
}

/** The result of a node that says no more than that it failed. */
export function broken(node: NamedNode, at: Date): CacheTaskNode {
  return resultOf(node, 'failed', {
    finishedAt: at.toISOString(),
    message: 'The data plane of the node could not be asked. Read the log of the node.',
    errorCode: 'prefetch_failed',
    errorParams: { reason: 'other' },
  });
}

function countsOf({ succeeded, failed }: PrefetchState): Pick<CacheTaskNode, 'succeeded' | 'failed'> {
  return { succeeded, failed };
}

type Described = Pick<CacheTaskNode, 'message' | 'errorCode' | 'errorParams'>;

function timeout(done: number, total: number): Described {
  return {
    message: `The time ended after ${done} of ${total} URLs.`,
    errorCode: 'prefetch_timeout',
    errorParams: { done: String(done), total: String(total) },
  };
}

function described(code: Code, state: PrefetchState): Described {
  const { total, succeeded, failed } = state;
  if (code === 'prefetch_timeout') return timeout(succeeded + failed, total);
  if (code === 'sitemap_empty')
    return { message: 'The sitemap has no URL of the site.', errorCode: code, errorParams: {} };
  const reason = REASONS.includes(state.reason) ? state.reason : 'other';
  const url = state.url.slice(0, MAX_URL);
  const status = state.status >= 100 && state.status <= 599 ? String(state.status) : null;
  const why = { url, reason, ...(status === null ? {} : { status }) };
  const shown = `${url} (${status && reason === 'status' ? `status ${status}` : reason})`;
  if (code === 'sitemap_failed')
    return { message: `The node could not read a sitemap: ${shown}.`, errorCode: code, errorParams: why };
  return {
    message: `${failed} of ${total} URLs could not be fetched; the first is ${shown}.`,
    errorCode: code,
    errorParams: { failed: String(failed), total: String(total), ...why },
  };
}
