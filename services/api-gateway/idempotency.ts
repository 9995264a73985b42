// Idempotency records, the gateway's half: claiming a key before the action runs, and keeping answers that no
// transaction of the action kept. A claim carries an attempt number; an attempt that was taken over can no longer
// complete, so its transaction rolls back.
import { createHash } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { IdempotencyClaim } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { asUnavailable } from '../../runtime/write.ts';

/** What makes two requests the same. */
export interface Fingerprint {
  method: string;
  /** With its query, as it was sent. */
  target: string;
  body: Buffer;
}

export interface StoredAnswer {
  status: number;
  body: string;
  headers: Record<string, string>;
}

/** The caller runs the action with the claim, or repeats the stored answer. */
export type Claimed = { claim: IdempotencyClaim; stored: null } | { claim: null; stored: StoredAnswer };

interface RecordRow {
  same: boolean;
  state: 'running' | 'done' | 'released';
  status: number;
  body: string;
  headers: Record<string, string>;
}

// Longer than any action can take: an attempt that is this old has ended without a trace.
const INTERRUPTED = "interval '10 minutes'";
const KEPT = "interval '24 hours'";

/** Claims the key; throws IDEMPOTENCY_KEY_MISMATCH or IDEMPOTENCY_IN_PROGRESS. */
export async function claimIdempotency(
  runtime: Runtime,
  namespace: string,
  key: string,
  request: Fingerprint,
): Promise<Claimed> {
  const hash = createHash('sha256').update(request.body).digest();
  // Twice: between the two statements the record can be purged.
  for (let round = 0; round < 2; round++) {
    const attempt = await tryClaim(runtime, namespace, key, request, hash);
    if (attempt !== null) return { claim: { namespace, key, attempt }, stored: null };
    const row = await findRecord(runtime, namespace, key, request, hash);
    if (row === null) continue;
    if (!row.same) fail('IDEMPOTENCY_KEY_MISMATCH');
    if (row.state !== 'done') fail('IDEMPOTENCY_IN_PROGRESS');
    return { claim: null, stored: { status: row.status, body: row.body, headers: row.headers } };
  }
  return fail('IDEMPOTENCY_IN_PROGRESS');
}

async function tryClaim(
  { pools }: Runtime,
  namespace: string,
  key: string,
  { method, target }: Fingerprint,
  hash: Buffer,
): Promise<number | null> {
  const sql = `
    insert into idempotency_record as r (namespace, key, method, path, body_hash, state)
    values (?, ?, ?, ?, ?, 'running')
    on conflict (namespace, key) do update
      set attempt = r.attempt + 1, method = excluded.method, path = excluded.path, body_hash = excluded.body_hash,
          state = 'running', status = null, body = null, headers = null, started_at = now(), finished_at = null
      where r.state = 'released'
         or r.started_at < now() - ${KEPT}
         or (r.state = 'running' and r.started_at < now() - ${INTERRUPTED} and r.method = excluded.method
             and r.path = excluded.path and r.body_hash = excluded.body_hash)
    returning attempt`;
  try {
    const { rows } = await pools.api.raw(sql, [namespace, key, method, target, hash]);
    return (rows[0] as { attempt: number } | undefined)?.attempt ?? null;
  } catch (error) {
    throw asUnavailable(error);
  }
}

async function findRecord(
  { pools }: Runtime,
  namespace: string,
  key: string,
  { method, target }: Fingerprint,
  hash: Buffer,
): Promise<RecordRow | null> {
  const sql = `
    select state, status, body, coalesce(headers, '{}') as headers,
           method = ? and path = ? and body_hash = ? as same
    from idempotency_record where namespace = ? and key = ?`;
  try {
    const { rows } = await pools.api.raw(sql, [method, target, hash, namespace, key]);
    return (rows[0] as RecordRow | undefined) ?? null;
  } catch (error) {
    throw asUnavailable(error);
  }
}

/**
 * Keeps the answer as it is sent. The action's transaction kept its output already; what was published after that
 * transaction is added here.
 */
export async function keepAnswer({ pools }: Runtime, claim: IdempotencyClaim, answer: StoredAnswer): Promise<void> {
  const { status, body, headers } = answer;
  await pools.api.raw(
    `update idempotency_record
        set state = 'done', status = :status, body = :body, headers = :headers, finished_at = now()
      where namespace = :namespace and key = :key and attempt = :attempt
        and (state = 'running'
             or state = 'done' and (status, body, headers) is distinct from (:status, :body, :headers::jsonb))`,
    { ...claim, status, body, headers: JSON.stringify(headers) },
  );
}

/** Gives the key back after an answer that is not kept, and fences the attempt, which may still be running. */
export async function releaseClaim({ pools }: Runtime, claim: IdempotencyClaim): Promise<void> {
  await pools
    .api('idempotency_record')
    .where({ ...claim, state: 'running' })
    .update({ state: 'released', attempt: claim.attempt + 1 });
}

/** As {@link releaseClaim}, and leaves no record. An attempt that still runs finds none to complete and rolls back. */
export async function forgetClaim({ pools }: Runtime, claim: IdempotencyClaim): Promise<void> {
  await pools
    .api('idempotency_record')
    .where({ ...claim, state: 'running' })
    .delete();
}
