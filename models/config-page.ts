// Reads a snapshot of a cluster's configuration in pages, all of one revision while the cluster goes on changing.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { type ConfigPage, ConfigPageSchema } from '../proto/gen/svc/node/v1/config_pb.js';
import { ENTRY_OVERHEAD_BYTES, type EntryRow, PULLED_BYTES, position, toEntry } from './config-entry.ts';
import { readConfigHead, readSetHash } from './config-history.ts';

/** Entries in one page. */
const PAGE_ENTRIES = 2000;

/**
 * One page of a snapshot. The first names the head as its checkpoint; a token continues below the same checkpoint as
 * long as the history reaches back to it, else the answer starts a new snapshot (its checkpoint is another).
 * Null when there is no such cluster.
 */
export async function readConfigPage(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  pageToken: string,
): Promise<ConfigPage | null> {
  const head = await readConfigHead(pool, clusterId);
  if (!head) return null;
  const token = parseToken(pageToken);
  const resumes = token !== null && token.epoch === head.epoch && token.revision <= head.revision;
  const { after, revision } =
    resumes && token.revision >= head.deltaFloor ? token : { after: null, revision: head.revision };
  const setHash = revision === head.revision ? head.setHash : await readSetHash(pool, clusterId, head.epoch, revision);
  const { rows } = await pool.query<EntryRow>({
    name: 'config-page',
    text: `
      select kind, resource_id, features, body from (
        select e.kind, e.resource_id, e.features, b.body,
          sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}) over page as running,
          row_number() over page as position
        from (
          select kind, resource_id, features, blob_hash from config_entry
            where cluster_id = $1 and track = 'S' and from_revision <= $2
              and (to_revision is null or to_revision > $2) and (kind, resource_id) > ($3, $4)
            order by kind, resource_id limit $5
        ) e join config_blob b on b.hash = e.blob_hash
        window page as (order by e.kind, e.resource_id)
      ) sized where running <= $6 or position = 1 order by kind, resource_id`,
    values: [clusterId, revision.toString(), after?.kind ?? '', after?.id ?? '', PAGE_ENTRIES, PULLED_BYTES / 4],
  });
  const page = create(ConfigPageSchema, {
    checkpoint: position(head.epoch, revision, setHash),
    entries: rows.map(toEntry),
  });
  const end = rows.at(-1);
  if (end && (await hasMore(pool, clusterId, revision, end))) {
    page.nextPageToken = formatToken(head.epoch, revision, { kind: end.kind, id: end.resource_id });
  }
  return page;
}

async function hasMore(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  revision: bigint,
  after: EntryRow,
): Promise<boolean> {
  const { rows } = await pool.query({
    name: 'config-page-more',
    text: `select 1 from config_entry where cluster_id = $1 and track = 'S' and from_revision <= $2
      and (to_revision is null or to_revision > $2) and (kind, resource_id) > ($3, $4)
      order by kind, resource_id limit 1`,
    values: [clusterId, revision.toString(), after.kind, after.resource_id],
  });
  return rows.length > 0;
}

interface PageToken {
  epoch: bigint;
  revision: bigint;
  after: { kind: string; id: string };
}

function formatToken(epoch: bigint, revision: bigint, after: PageToken['after']): string {
  return Buffer.from(JSON.stringify([String(epoch), String(revision), after.kind, after.id])).toString('base64url');
}

/** Null for what no page ever carried. */
function parseToken(token: string): PageToken | null {
  if (token === '' || token.length > 1024) return null;
  const text = Buffer.from(token, 'base64url').toString();
  const match = /^\["([0-9]{1,19})","([0-9]{1,18})",("(?:[^"\\]|\\.)*"),("(?:[^"\\]|\\.)*")\]$/.exec(text);
  if (!match) return null;
  try {
    const [kind, id] = JSON.parse(`[${match[3]},${match[4]}]`) as [string, string];
    if (kind.includes('\0') || id.includes('\0')) return null;
    return { epoch: BigInt(match[1]!), revision: BigInt(match[2]!), after: { kind, id } };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
