// Where nodes are in their feeds. The places of the older feeds are columns of node_state; a feed by name has rows in node_feed.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Feed } from '../../runtime/feeds.ts';
import { LIVE } from '../db/live-hint.ts';
import { NODE_HINTS, ONLINE_SECONDS, type PositionRow } from './node-state.ts';

/** What a feed says of its places. */
export type StoredFeed = Pick<Feed, 'name' | 'columns' | 'hint'>;

/** Statements by the feeds they write. */
const statements = new WeakMap<object, string>();

/**
 * Writes positions; the time of a feed moves only with its place. `feeds`: all but configurations. Nodes that are gone are
 * skipped. Answers whether there is something to tell.
 */
export async function writePositions(
  pool: Pick<Pool, 'query'>,
  feeds: readonly StoredFeed[],
  rows: readonly PositionRow[],
): Promise<boolean> {
  const inRows = new Set(feeds.filter(({ columns }) => columns === null).map(({ name }) => name));
  const list = rows.map(({ nodeId, config, places }) => ({
    nodeId,
    configAt: config?.at,
    epoch: config && String(config.epoch),
    track: config?.track,
    revision: config && String(config.revision),
    hash: config?.setHash,
    failed: config?.failed,
    ...Object.fromEntries([...places].flatMap(([name, place]) => (inRows.has(name) ? [] : fieldsOf(name, place)))),
    feeds: [...places].flatMap(([feed, { at, epoch, sequence }]) =>
      inRows.has(feed) ? [{ feed, at, epoch: String(epoch), sequence: String(sequence) }] : [],
    ),
  }));
  const text = statements.get(feeds) ?? statementOf(feeds);
  statements.set(feeds, text);
  const { rowCount } = await pool.query({ name: 'write-positions', text, values: [JSON.stringify(list)] });
  return (rowCount ?? 0) > 0;
}

function fieldsOf(name: string, { at, epoch, sequence }: { at: Date; epoch: bigint; sequence: bigint }) {
  return [
    [`${name} at`, at],
    [`${name} epoch`, String(epoch)],
    [`${name} sequence`, String(sequence)],
  ];
}

function statementOf(feeds: readonly StoredFeed[]): string {
  const inColumns = feeds.flatMap(({ name, columns, hint }) => (columns ? [{ name, columns, hint }] : []));
  const inRows = feeds.filter(({ columns }) => columns === null);
  const sets = inColumns.flatMap(({ name, columns: { epoch, sequence, at } }) => [
    `${epoch} = coalesce(v."${name} epoch", s.${epoch})`,
    `${sequence} = coalesce(v."${name} sequence", s.${sequence})`,
    ...(at
      ? [
          `${at} = case when v."${name} epoch" is not null
            and (v."${name} epoch", v."${name} sequence") is distinct from (s.${epoch}, s.${sequence})
            then v."${name} at" else s.${at} end`,
        ]
      : []),
  ]);
  const moved = inColumns.map(
    ({ name, columns: { epoch, sequence } }) =>
      `(old.${epoch}, old.${sequence}) is distinct from (new.${epoch}, new.${sequence}) as "${name}"`,
  );
  const hinted = [
    `select node_id, 'revisions' as hint from moved where config`,
    ...inColumns.flatMap(({ name, hint }) =>
      hint ? [`select node_id, '${hint}' from moved where moved."${name}"`] : [],
    ),
    ...inRows.flatMap(({ name, hint }) =>
      hint ? [`select node_id, '${hint}' from placed where feed = '${name}'`] : [],
    ),
  ];
  const fields = inColumns.map(
    ({ name }) => `, "${name} at" timestamptz, "${name} epoch" bigint, "${name} sequence" bigint`,
  );
  return `with input as materialized (
      select * from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, "configAt" timestamptz, epoch bigint, track text, revision bigint, hash text, failed text,
        feeds jsonb${fields.join('')})
    ), moved as (update node_state s set
        epoch = coalesce(v.epoch, s.epoch), track = coalesce(v.track, s.track),
        revision = coalesce(v.revision, s.revision),
        set_hash = coalesce(decode(v.hash, 'hex'), s.set_hash),
        failed = coalesce(v.failed::jsonb, s.failed),
        applied_at = case when (v.epoch, v.revision) is distinct from (s.epoch, s.revision) and v.epoch is not null
          then v."configAt" else s.applied_at end${sets.map((set) => `,\n        ${set}`).join('')}
      from input v
      where s.node_id = v."nodeId"
      returning ${[
        's.node_id',
        `(old.epoch, old.track, old.revision, old.failed)
          is distinct from (new.epoch, new.track, new.revision, new.failed) as config`,
        ...moved,
      ].join(',\n        ')})${inRows.length === 0 ? '' : PLACED},
      hinted as (${hinted.join(' union all ')}),
      changed as (select distinct node_id from hinted)
      insert into outbox (topic, key) select '${LIVE}', key from (${NODE_HINTS}
        union select h.hint || ' ' || n.cluster_id from hinted h join node n on n.id = h.node_id) as h`;
}

/** A node that is being deleted keeps nobody else's place from being written. */
const PLACED = `,
      known as (select n.id from node n where n.id in (select "nodeId" from input) for key share skip locked),
      placed as (insert into node_feed as f (node_id, feed, epoch, sequence, reached_at)
        select k.id, p.feed, p.epoch, p.sequence, p.at from input v join known k on k.id = v."nodeId"
          cross join lateral jsonb_to_recordset(v.feeds) as p(feed text, epoch bigint, sequence bigint, at timestamptz)
        on conflict (node_id, feed) do update
          set epoch = excluded.epoch, sequence = excluded.sequence, reached_at = excluded.reached_at
          where (f.epoch, f.sequence) is distinct from (excluded.epoch, excluded.sequence)
        returning f.node_id, f.feed)`;

/** Where one node is in a feed. */
export interface NodePlace {
  nodeId: string;
  name: string;
  online: boolean;
  /** It has the capability that the feed needs. */
  able: boolean;
  /** Null: it has reported none. */
  place: { epoch: bigint; sequence: bigint } | null;
  /** Whether that is the place asked for or a later one. */
  reached: boolean;
  /** When it reached the place it is at. */
  reachedAt: Date | null;
}

/**
 * The active nodes of a cluster, by name, each with its place in a feed by name. A place of an epoch before counts as
 * reached by the nodes that are in the present one: they began it with everything.
 */
export async function nodesInFeed(
  sql: Knex,
  feed: Pick<Feed, 'name' | 'wire'>,
  clusterId: string,
  place: { epoch: bigint; sequence: bigint },
): Promise<NodePlace[]> {
  const { rows } = await sql.raw<{ rows: (Omit<NodePlace, 'place'> & { epoch: string | null; sequence: string })[] }>(
    `select n.id as "nodeId", n.name, f.epoch, f.sequence, f.reached_at as "reachedAt",
        coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false) as online,
        :needs::text is null or :needs = any(s.features) as able,
        coalesce(f.epoch = c.epoch and f.sequence >=
          case when c.epoch = :epoch::bigint then :sequence::bigint else 0 end, false) as reached
      from node n join node_state s on s.node_id = n.id cross join console_state c
        left join node_feed f on f.node_id = n.id and f.feed = :feed
     where n.cluster_id = :clusterId and n.status = 'active'
     order by n.name, n.id`,
    {
      feed: feed.name,
      needs: feed.wire.needs,
      clusterId,
      epoch: String(place.epoch),
      sequence: String(place.sequence),
    },
  );
  return rows.map(({ epoch, sequence, ...row }) => ({
    ...row,
    place: epoch === null ? null : { epoch: BigInt(epoch), sequence: BigInt(sequence) },
  }));
}
