// What nodes answer certificate authorities (RFC 8555, section 8.3): a feed of each cluster of its own, because an answer
// is no configuration. It makes no revision, waits for no canary, and ends by itself after ten minutes.
//
// Numbers are a cluster's own and in the order of commits: a change holds its cluster's head until it is committed.
import { create } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Capability } from '../../contract/capabilities.ts';
import {
  type AcmeBatch,
  AcmeBatchSchema,
  AcmePositionSchema,
  type AcmeToken,
  AcmeTokenSchema,
  type GetAcmeTokensResponse,
  GetAcmeTokensResponseSchema,
} from '../../proto/gen/svc/node/v1/certificates_pb.js';
import type { Tx } from '../../runtime/write.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** Topic of the feed's rows in the outbox. */
export const ACME_TOPIC = 'acme';
/** What a node needs to answer. */
export const ANSWERS: Capability = 'http01-v1';
/** Tokens of one cluster at most. */
export const MAX_TOKENS = 10_000;
/** How long a token is answered. */
export const TOKEN_MS = 10 * 60_000;

/** Tokens in one call at most. */
const MAX_CHANGE = 1_000;
/** Clocks of nodes that were away: what ended so long ago is no node's any more. */
const KEPT_MINUTES = 60;

/** A question of a certificate authority. */
export interface AcmeQuestion {
  /** Lower case, as in a Host header; 1-253 characters. */
  host: string;
  /** base64url, 1-256 characters. */
  token: string;
}

export interface AcmeAnswer extends AcmeQuestion {
  /** "<token>.<thumbprint>", at most 512 characters. */
  keyAuthorization: string;
}

/** A place in the changes of one cluster; another epoch has another history. */
export interface AcmePlace {
  epoch: bigint;
  sequence: bigint;
}

/** A cluster has as many tokens as it may have; nothing was written. */
export class TooManyTokens extends Error {
  readonly clusterId: string;

  constructor(clusterId: string) {
    super(`cluster ${clusterId} has ${MAX_TOKENS} ACME tokens, which is the limit`);
    this.clusterId = clusterId;
  }
}

/**
 * Has nodes of the clusters answer for {@link TOKEN_MS}; a token that is there is replaced and lasts anew. Answers each
 * cluster's place that has them, without clusters that are gone. Last of a transaction, because other changes of the
 * clusters wait for its end. At most 1,000 answers. Throws {@link TooManyTokens}.
 */
export async function putTokens(
  tx: Tx,
  clusterIds: readonly string[],
  answers: readonly AcmeAnswer[],
): Promise<Map<string, AcmePlace>> {
  return changeClusters(tx, clusterIds, answers, async (clusterId, given, first) => {
    const { rows } = await tx.sql.raw<{ rows: { full: boolean }[] }>(
      `with written as (
         insert into acme_token (cluster_id, host, token, key_authorization, expires_at, seq)
         select :clusterId, v.host, v.token, v."keyAuthorization", :expiresAt, :first::bigint + v.place - 1
           from rows from (jsonb_to_recordset(:given::jsonb) as (host text, token text, "keyAuthorization" text))
             with ordinality as v(host, token, "keyAuthorization", place)
         on conflict (cluster_id, host, token) do update set key_authorization = excluded.key_authorization,
           expires_at = excluded.expires_at, removed = false, seq = excluded.seq
         returning old.seq is null or old.removed or old.expires_at <= :now as added)
       select (select count(*) from acme_token
           where cluster_id = :clusterId and not removed and expires_at > :now)
         + (select count(*) from written where added) > ${MAX_TOKENS} as full`,
      {
        clusterId,
        given: JSON.stringify(given),
        first: String(first),
        now: tx.now,
        expiresAt: new Date(tx.now.getTime() + TOKEN_MS),
      },
    );
    if (rows[0]!.full) throw new TooManyTokens(clusterId);
  });
}

/** Has nodes of the clusters answer no longer; what is not there is left out. Last of a transaction, as {@link putTokens}. */
export async function removeTokens(
  tx: Tx,
  clusterIds: readonly string[],
  questions: readonly AcmeQuestion[],
): Promise<Map<string, AcmePlace>> {
  return changeClusters(tx, clusterIds, questions, async (clusterId, given, first) => {
    await tx.sql.raw(
      `update acme_token t set removed = true, seq = :first::bigint + v.place - 1
         from rows from (jsonb_to_recordset(:given::jsonb) as (host text, token text))
           with ordinality as v(host, token, place)
        where t.cluster_id = :clusterId and t.host = v.host and t.token = v.token and not t.removed`,
      { clusterId, given: JSON.stringify(given), first: String(first) },
    );
  });
}

/** Whether nodes of one of the clusters answer each of the questions until then. */
export async function areAnswered(
  sql: Knex,
  clusterIds: readonly string[],
  questions: readonly AcmeQuestion[],
  until: Date,
): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: { answered: boolean }[] }>(
    `select coalesce(bool_and(exists (
         select from acme_token t where t.cluster_id = any(?) and t.host = q.host and t.token = q.token
            and not t.removed and t.expires_at >= ?)), true) as answered
       from jsonb_to_recordset(?::jsonb) as q(host text, token text)`,
    [clusterIds as never, until, JSON.stringify(questions)],
  );
  return rows[0]!.answered;
}

/** Gives each change of each cluster a number of its own, and tells of it; clusters in one order, so that none waits in a ring. */
async function changeClusters<Q extends AcmeQuestion>(
  tx: Tx,
  clusterIds: readonly string[],
  questions: readonly Q[],
  write: (clusterId: string, given: readonly Q[], first: bigint) => Promise<void>,
): Promise<Map<string, AcmePlace>> {
  // The last one of a token counts.
  const given = [...new Map(questions.map((question) => [`${question.host} ${question.token}`, question])).values()];
  if (given.length > MAX_CHANGE) throw new RangeError(`at most ${MAX_CHANGE} tokens at once`);
  const places = new Map<string, AcmePlace>();
  for (const clusterId of [...new Set(clusterIds)].sort()) {
    const { rows } = await tx.sql.raw<{ rows: { epoch: string; seq: string }[] }>(
      `insert into acme_head as h (cluster_id, seq) select id, ?::bigint from cluster where id = ? for key share
         on conflict (cluster_id) do update set seq = h.seq + excluded.seq
       returning (select epoch from console_state)::text as epoch, h.seq::text as seq`,
      [given.length, clusterId],
    );
    // Of a cluster that is gone everything is.
    if (rows.length === 0) continue;
    const place = { epoch: BigInt(rows[0]!.epoch), sequence: BigInt(rows[0]!.seq) };
    places.set(clusterId, place);
    if (given.length === 0) continue;
    await write(clusterId, given, place.sequence - BigInt(given.length) + 1n);
    await tx.sql('outbox').insert({ topic: ACME_TOPIC, key: clusterId });
    tx.wake = true;
  }
  return places;
}

interface TokenRow {
  host: string;
  token: string;
  key_authorization: string;
  expires_at: Date;
}

/** Where each cluster (or each of the given ones) is, by id. */
export async function readAcmeTargets(
  pool: Pick<Pool, 'query'>,
  clusterIds?: readonly string[],
): Promise<Map<string, AcmePlace>> {
  const { rows } = await pool.query<{ id: string; epoch: string; seq: string }>({
    name: 'acme-targets',
    text: `select c.id, s.epoch, coalesce(h.seq, 0) as seq from cluster c cross join console_state s
      left join acme_head h on h.cluster_id = c.id where $1::text[] is null or c.id = any($1::text[])`,
    values: [clusterIds ?? null],
  });
  return new Map(rows.map(({ id, epoch, seq }) => [id, { epoch: BigInt(epoch), sequence: BigInt(seq) }]));
}

/**
 * What became of the tokens changed in (after, to]; `to` is the cluster's place, or the one reached by `limit` changes.
 * Null when nothing follows. The caller has checked that `after` is of this epoch.
 */
export async function readAcmeChanges(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  after: bigint,
  limit: number,
): Promise<AcmeBatch | null> {
  // One statement: the place and the changes of one moment. Of a token that ended and was swept nothing is told.
  const { rows } = await pool.query<
    { epoch: string; to: string; answered: boolean } & (TokenRow | { [K in keyof TokenRow]: null })
  >({
    name: 'acme-changes',
    text: `
      with change as materialized (
        select * from acme_token where cluster_id = $1 and seq > $2 order by seq limit $3
      ), reached as (
        select case when (select count(*) from change) = $3 then (select max(seq) from change)
          else (select coalesce(max(seq), 0) from acme_head where cluster_id = $1) end as seq
      )
      select s.epoch, r.seq as "to", c.host, c.token, c.key_authorization, c.expires_at,
          not c.removed and c.expires_at > now() as answered
        from console_state s cross join reached r left join change c on true order by c.seq`,
    values: [clusterId, String(after), limit],
  });
  const first = rows[0];
  if (!first || BigInt(first.to) <= after) return null;
  const batch = create(AcmeBatchSchema, { epoch: BigInt(first.epoch), from: after, to: BigInt(first.to) });
  for (const row of rows) {
    if (row.host === null) continue;
    if (row.answered) batch.upserts.push(toToken(row));
    else batch.removed.push(create(AcmeTokenSchema, { host: row.host, token: row.token }));
  }
  return batch;
}

/** Everything that nodes of the cluster answer at the moment. */
export async function readAcmeTokens(pool: Pick<Pool, 'query'>, clusterId: string): Promise<GetAcmeTokensResponse> {
  const { rows } = await pool.query<{ epoch: string; seq: string } & (TokenRow | { [K in keyof TokenRow]: null })>({
    name: 'acme-tokens',
    text: `
      select s.epoch, coalesce((select seq from acme_head where cluster_id = $1), 0) as seq,
          t.host, t.token, t.key_authorization, t.expires_at
        from console_state s left join acme_token t
          on t.cluster_id = $1 and not t.removed and t.expires_at > now()
       order by t.seq limit ${MAX_TOKENS}`,
    values: [clusterId],
  });
  const { epoch, seq } = rows[0]!;
  return create(GetAcmeTokensResponseSchema, {
    position: create(AcmePositionSchema, { epoch: BigInt(epoch), sequence: BigInt(seq) }),
    tokens: rows.flatMap((row) => (row.host === null ? [] : [toToken(row)])),
  });
}

function toToken(row: TokenRow): AcmeToken {
  return create(AcmeTokenSchema, {
    host: row.host,
    token: row.token,
    keyAuthorization: row.key_authorization,
    expiresAtMs: BigInt(row.expires_at.getTime()),
  });
}

export interface AwaitedNode {
  id: string;
  name: string;
}

/** Nodes that visitors, and so certificate authorities, may reach: active and online. */
export interface AwaitedNodes {
  /** Those that have everything up to the place. */
  reached: number;
  /** Those that can answer and do not have it yet, by name. */
  behind: AwaitedNode[];
  /** Those that cannot answer at all, by name. */
  unable: AwaitedNode[];
}

/**
 * Who has what the place has. A place of an epoch that is over was read by everybody who is in the present one. What a
 * node says to have beyond the cluster's own place counts for nothing.
 */
export async function nodesBehind(sql: Knex, clusterId: string, place: AcmePlace): Promise<AwaitedNodes> {
  const { rows } = await sql.raw<{ rows: (AwaitedNode & { able: boolean; reached: boolean })[] }>(
    `select n.id, n.name, '${ANSWERS}' = any(s.features) as able,
        coalesce(s.acme_epoch = c.epoch and s.acme_sequence between
          case when c.epoch = :epoch::bigint then :sequence::bigint else 0 end
          and coalesce((select seq from acme_head where cluster_id = :clusterId), 0), false) as reached
      from node n join node_state s on s.node_id = n.id cross join console_state c
     where n.cluster_id = :clusterId and n.status = 'active'
       and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
     order by n.name, n.id`,
    { clusterId, epoch: String(place.epoch), sequence: String(place.sequence) },
  );
  const named = (found: typeof rows) => found.map(({ id, name }) => ({ id, name }));
  const able = rows.filter((row) => row.able);
  return {
    reached: able.filter(({ reached }) => reached).length,
    behind: named(able.filter(({ reached }) => !reached)),
    unable: named(rows.filter((row) => !row.able)),
  };
}

/** Deletes a batch of those that ended so long ago that no node has them; answers how many. */
export async function sweepAcmeTokens(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from acme_token where ctid = any(array(
       select ctid from acme_token where expires_at < now() - make_interval(mins => ${KEPT_MINUTES})
       limit ${SWEEP_BATCH} for update skip locked))`,
  );
  return rowCount;
}
