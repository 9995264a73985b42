// Idempotency records, the gateway's half: claiming a key before the action runs, and keeping answers that no
// transaction of the action kept. A claim carries an attempt number; an attempt that was taken over can no longer
// complete, so its transaction rolls back.
import { createHash, randomInt } from 'node:crypto';
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
/** Below what the column holds, so that an attempt can be fenced by the next number. */
const MOST_ATTEMPT = 2 ** 30;

/**
 * Claims the key; throws IDEMPOTENCY_KEY_MISMATCH or IDEMPOTENCY_IN_PROGRESS. `lost` is told of a claim that may have been
 * made although the database did not answer: its number is known before it is written.
 */
export async function claimIdempotency(
  runtime: Runtime,
  { namespace, key }: Omit<IdempotencyClaim, 'attempt'>,
  request: Fingerprint,
  lost: (claim: IdempotencyClaim) => void,
): Promise<Claimed> {
  const hash = createHash('sha256').update(request.body).digest();
  // Twice: between the two statements the record can be purged.
  for (let round = 0; round < 2; round++) {
    const claim = { namespace, key, attempt: randomInt(1, MOST_ATTEMPT) };
    let claimed: boolean;
    try {
      claimed = await tryClaim(runtime, claim, request, hash);
    } catch (error) {
      lost(claim);
      throw asUnavailable(error);
    }
    if (claimed) return { claim, stored: null };
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
  { namespace, key, attempt }: IdempotencyClaim,
  { method, target }: Fingerprint,
  hash: Buffer,
): Promise<boolean> {
  const sql = `
    insert into idempotency_record as r (namespace, key, method, path, body_hash, state, attempt)
    values (?, ?, ?, ?, ?, 'running', ?)
    on conflict (namespace, key) do update
      set attempt = excluded.attempt, method = excluded.method, path = excluded.path, body_hash = excluded.body_hash,
          state = 'running', status = null, body = null, headers = null, started_at = now(), finished_at = null
      where r.attempt <> excluded.attempt and (r.state = 'released'
         or r.started_at < now() - ${KEPT}
         or (r.state = 'running' and r.started_at < now() - ${INTERRUPTED} and r.method = excluded.method
             and r.path = excluded.path and r.body_hash = excluded.body_hash))`;
  const { rowCount } = await pools.api.raw<{ rowCount: number }>(sql, [namespace, key, method, target, hash, attempt]);
  return rowCount === 1;
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

/** As {@link releaseClaim} for several; answers the attempts that there were. */
export async function releaseClaims({ pools }: Runtime, claims: readonly IdempotencyClaim[]): Promise<number[]> {
  const { rows } = await pools.api.raw<{ rows: { attempt: number }[] }>(
    `update idempotency_record r set state = 'released', attempt = r.attempt + 1
       from jsonb_to_recordset(?::jsonb) as c(namespace text, key text, attempt int)
      where r.namespace = c.namespace and r.key = c.key and r.attempt = c.attempt and r.state = 'running'
      returning c.attempt`,
    [JSON.stringify(claims)],
  );
  return rows.map(({ attempt }) => attempt);
}

/** As {@link releaseClaim}, and leaves no record. An attempt that still runs finds none to complete and rolls back. */
export async function forgetClaim({ pools }: Runtime, claim: IdempotencyClaim): Promise<void> {
  await pools
    .api('idempotency_record')
    .where({ ...claim, state: 'running' })
    .delete();
}
