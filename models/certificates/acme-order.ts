// Orders at certificate authorities, one row a certificate: its latest. Whoever works on a step holds the row's lease,
// and every write of a step names it, so that a process that was taken for dead changes nothing any more.
import type { Knex } from 'knex';
import type { SecretPlace } from '../../runtime/sealer.ts';
import { BaseModel } from '../db/base.ts';

export const ORDER_STEPS = [
  'check',
  'account',
  'order',
  'challenges',
  'present',
  'propagate',
  'validate',
  'finalize',
  'download',
] as const;
export type OrderStep = (typeof ORDER_STEPS)[number];
export type OrderState = OrderStep | 'done' | 'failed';

export type ChallengeKind = 'http01' | 'dns01';

/** What an authority wants shown of one name. */
export interface Authorization {
  url: string;
  /** Without the marker of a wildcard. */
  name: string;
  wildcard: boolean;
  /** waiting: not asked for yet; asked: the authority looks; valid. */
  state: 'waiting' | 'asked' | 'valid' | 'invalid';
  challengeUrl: string;
  token: string;
  /** Code of what the authority found wrong. */
  error: string | null;
}

/** A place in a cluster's feed of answers, in decimals. */
export interface StoredPlace {
  epoch: string;
  sequence: string;
}

/** What an order says of what went wrong, beside its code. */
export type OrderErrorParams = Record<string, string | number | string[]>;

export class AcmeOrder extends BaseModel {
  static override tableName = 'acme_order';
  static override idColumn = 'certificate_id';
  static override get jsonAttributes() {
    return ['authorizations', 'places', 'errorParams'];
  }

  declare certificateId: string;
  /** Null where the request names none that there is: such an order fails at its account. */
  declare accountId: string | null;
  declare names: string[];
  declare state: OrderState;
  declare failedStep: OrderStep | null;
  declare urgent: boolean;
  declare lease: string;
  declare nextAt: Date | null;
  declare tries: number;
  declare startedAt: Date;
  declare stepAt: Date;
  declare finishedAt: Date | null;
  declare orderUrl: string | null;
  declare finalizeUrl: string | null;
  declare certificateUrl: string | null;
  declare privateKey: string | null;
  declare csr: Buffer | null;
  declare authorizations: Authorization[];
  /** The authority had forgotten the account, which was made anew. */
  declare reopened: boolean;
  declare places: Record<string, StoredPlace>;
  declare replaces: string | null;
  declare error: string | null;
  declare errorParams: OrderErrorParams;
  declare renewalCheckAt: Date | null;
  /** What the authority suggested last; null together. */
  declare renewalStart: Date | null;
  declare renewalEnd: Date | null;

  static async byCertificate(sql: Knex, certificateId: string): Promise<AcmeOrder | undefined> {
    return AcmeOrder.query(sql).findById(certificateId);
  }
}

export type OrderPatch = Partial<Omit<AcmeOrder, 'certificateId' | 'lease' | keyof BaseModel>>;

/** Another process has the order by now. */
export class LeaseLost extends Error {}

export function orderKeyPlace(certificateId: string): SecretPlace {
  return { table: 'acme_order', column: 'private_key', row: certificateId };
}

/** What a certificate asks of an authority (`certificate.request`). */
export interface CertificateRequest {
  ca: 'letsencrypt' | 'letsencryptStaging' | 'zerossl' | 'custom';
  accountId: string;
  email: string;
  challenge: ChallengeKind;
  keyType: 'ec256' | 'rsa2048';
  dnsCredentialId: string | null;
  skipDnsCheck: boolean;
}

/**
 * Begins orders of certificates that are due and have none under way, those that never were issued first, while fewer than
 * `limit` that begun wait for their first step: others would wait behind them. Those that somebody waits for wait behind
 * their like alone.
 */
export async function beginDueOrders(sql: Knex, limit: number): Promise<void> {
  const due = `select c.id, a.id as account_id, c.requested_names, c.fingerprint is null or c.status = 'pending' as urgent
     from certificate c left join acme_order o on o.certificate_id = c.id
     left join acme_account a on a.id = c.request->>'accountId'
    where c.source = 'acme' and c.renew_at <= now() and o.next_at is null`;
  const { rows } = await sql.raw<{ rows: { every: number; urgent: number }[] }>(
    `select count(*)::int as every, count(*) filter (where urgent)::int as urgent
       from acme_order where state = 'check' and next_at <= now()`,
  );
  // Limits that the planner knows: it reads rows in their order then, and no more than it needs.
  const room = { urgent: Math.max(limit - rows[0]!.urgent, 0), others: Math.max(limit - rows[0]!.every, 0) };
  if (room.urgent + room.others === 0) return;
  await sql.raw(
    `with urgent as (
       ${due} and (c.fingerprint is null or c.status = 'pending')
        order by (c.fingerprint is null) desc, c.renew_at limit :urgent for update of c skip locked
     ), others as (
       ${due} and not (c.fingerprint is null or c.status = 'pending')
        order by c.renew_at limit :others for update of c skip locked
     ), due as (
       select * from urgent union all select * from others
     ), begun as (
       update certificate c set status = 'issuing', renew_at = null, updated_at = greatest(now(), updated_at + interval '1 ms')
         from due where c.id = due.id
     )
     insert into acme_order (certificate_id, account_id, names, state, urgent, next_at, started_at, step_at)
     select id, account_id, requested_names, 'check', urgent, now(), now(), now() from due
     on conflict (certificate_id) do update set account_id = excluded.account_id, names = excluded.names,
       state = 'check', urgent = excluded.urgent, lease = acme_order.lease + 1, next_at = now(), tries = 0,
       started_at = now(), step_at = now(), finished_at = null, order_url = null, finalize_url = null,
       certificate_url = null, private_key = null, csr = null, authorizations = '[]', places = '{}', replaces = null,
       reopened = false, failed_step = null, error = null, error_params = '{}', renewal_check_at = null,
       renewal_start = null, renewal_end = null`,
    room,
  );
}

/** An order that was due for longer was nobody's: that time is none of its step's. */
const UNWORKED_SECONDS = 5;

/**
 * Takes an order that is due and not one of `busy`: urgent ones first, then those under way before those that begin, each
 * by how long they have waited.
 */
export async function takeDueOrder(sql: Knex, busy: readonly string[]): Promise<AcmeOrder | undefined> {
  return AcmeOrder.query(sql)
    .patch({
      lease: sql.raw('lease + 1') as never,
      stepAt: sql.raw(
        `case when next_at < now() - interval '${UNWORKED_SECONDS} s' then step_at + (now() - next_at) else step_at end`,
      ) as never,
    })
    .where(
      'certificate_id',
      sql.raw(
        `(select certificate_id from acme_order where next_at <= now() and certificate_id <> all(?)
           order by urgent desc, (state = 'check'), next_at limit 1 for update skip locked)`,
        [busy as never],
      ),
    )
    .returning('*')
    .first();
}

/** Writes what a step found. Throws {@link LeaseLost}. */
export async function saveOrder(
  sql: Knex,
  { certificateId, lease }: Pick<AcmeOrder, 'certificateId' | 'lease'>,
  patch: OrderPatch,
): Promise<void> {
  const changed = await AcmeOrder.query(sql).patch(patch).where({ certificate_id: certificateId, lease });
  if (changed !== 1) throw new LeaseLost();
}

/** Keeps the lease until the end of the transaction. Throws {@link LeaseLost}. */
export async function holdLease(
  sql: Knex,
  { certificateId, lease }: Pick<AcmeOrder, 'certificateId' | 'lease'>,
): Promise<void> {
  const held = await AcmeOrder.query(sql).findOne({ certificate_id: certificateId, lease }).forUpdate();
  if (!held) throw new LeaseLost();
}

/** Which of the tokens other orders under way of the account show too: authorities hand out what is not proven yet again. */
export async function tokensOfOthers(
  sql: Knex,
  { certificateId, accountId }: Pick<AcmeOrder, 'certificateId' | 'accountId'>,
  tokens: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { token: string }[] }>(
    `select a->>'token' as token from acme_order o, jsonb_array_elements(o.authorizations) as a
      where o.next_at is not null and o.account_id = ? and o.certificate_id <> ? and a->>'token' = any(?)`,
    [accountId, certificateId, tokens as never],
  );
  return new Set(rows.map(({ token }) => token));
}

/** A certificate whose authority is to be asked when it wants it renewed. */
export interface RenewalCheck {
  certificateId: string;
  ca: CertificateRequest['ca'];
  leaf: Buffer;
  fingerprint: Buffer;
  notAfter: Date;
  /** The window of before; null without one. */
  start: Date | null;
  end: Date | null;
}

/** Those that are due, at most `limit`; each is asked for again after this time unless something better is saved. */
export async function takeRenewalChecks(sql: Knex, limit: number, againMs: number): Promise<RenewalCheck[]> {
  const { rows } = await sql.raw<{ rows: RenewalCheck[] }>(
    `update acme_order o set renewal_check_at = now() + make_interval(secs => ?::numeric / 1000)
       from certificate c
      where c.id = o.certificate_id and c.chain is not null and o.ctid = any(array(
        select ctid from acme_order where renewal_check_at <= now()
         order by renewal_check_at limit ? for update skip locked))
     returning o.certificate_id as "certificateId", c.request->>'ca' as ca, c.chain[1] as leaf, c.fingerprint,
       c.not_after as "notAfter", o.renewal_start as start, o.renewal_end as end`,
    [againMs, limit],
  );
  return rows;
}

/** Keeps what the authority said, unless another order has begun meanwhile. */
export async function saveRenewalCheck(
  sql: Knex,
  certificateId: string,
  { checkAt, start, end }: { checkAt: Date; start: Date | null; end: Date | null },
): Promise<void> {
  await AcmeOrder.query(sql)
    .patch({ renewalCheckAt: checkAt, renewalStart: start, renewalEnd: end })
    .where({ certificate_id: certificateId })
    .whereNotNull('renewal_check_at');
}

/** When the first of the buckets may be asked again; null when all may now. */
export async function blockedUntil(sql: Knex, keys: readonly string[]): Promise<Date | null> {
  const { rows } = await sql.raw<{ rows: { until: Date | null }[] }>(
    'select max(until) as until from acme_bucket where key = any(?) and until > now()',
    [keys as never],
  );
  return rows[0]!.until;
}

/** Asks nothing of the buckets before then; one that waits longer already goes on waiting. */
export async function blockUntil(sql: Knex, keys: readonly string[], until: Date): Promise<void> {
  await sql.raw(
    `insert into acme_bucket (key, until) select key, ? from unnest(?::text[]) as key order by key
       on conflict (key) do update set until = greatest(acme_bucket.until, excluded.until)`,
    [until, keys as never],
  );
}

/** Buckets whose time is over; answers how many went. */
export async function sweepBuckets(sql: Knex): Promise<number> {
  return sql('acme_bucket').where('until', '<', sql.fn.now()).delete();
}

/** A name with the cluster that answers for it. */
export interface ServedName {
  name: string;
  clusterId: string;
}

/** Which of the names enabled or disabled sites serve, with the cluster: as themselves or below a wildcard or suffix. */
export async function servedNames(sql: Knex, names: readonly string[]): Promise<ServedName[]> {
  const { rows } = await sql.raw<{ rows: ServedName[] }>(
    `select n.name, d.cluster_id as "clusterId" from unnest(?::text[]) as n(name)
       cross join lateral (
         select s.cluster_id from site_domain d join site s on s.id = d.site_id
          where (d.form = 'exact' and d.name = n.name)
             or (d.form = 'wildcard' and d.name = substring(n.name from position('.' in n.name) + 1))
             or (d.form = 'suffix' and d.name = any(array(
                  select substring(n.name from p.i + 1) from generate_series(1, length(n.name)) as p(i)
                   where substring(n.name from p.i for 1) = '.')))
          order by d.form = 'exact' desc, d.form = 'wildcard' desc, length(d.name) desc limit 1) d`,
    [names as never],
  );
  return rows;
}
