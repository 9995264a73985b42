// Reads a snapshot of a cluster's configuration in pages, all of one revision while the cluster goes on changing.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { type ConfigPage, ConfigPageSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { TrackPlace } from './config-delta.ts';
import { ENTRY_OVERHEAD_BYTES, type EntryRow, PULLED_BYTES, position, toEntry } from './config-entry.ts';
import { type ConfigPlace, headOn, readConfigHead, readSetHash, trackColumn } from './config-history.ts';

/** Entries in one page. */
const PAGE_ENTRIES = 2000;

/**
 * One page of a snapshot of what nodes of the track run. The first names the head as its checkpoint; a token continues
 * below the same checkpoint as long as the history reaches back to it, else the answer starts a new snapshot (its
 * checkpoint is another). Null when there is no such cluster.
 */
export async function readConfigPage(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  track: Track,
  pageToken: string,
): Promise<ConfigPage | null> {
  const head = await readConfigHead(pool, clusterId);
  if (!head) return null;
  const target = headOn(head, track);
  const token = parseToken(pageToken);
  const resumes = token !== null && token.epoch === target.epoch && token.track === target.track;
  const continued = resumes && token.revision <= target.revision && token.revision >= target.deltaFloor;
  const { after, revision } = continued ? token : { after: null, revision: target.revision };
  const setHash =
    revision === target.revision ? target.setHash : await readSetHash(pool, clusterId, { ...target, revision });
  const checkpoint = { ...target, revision, setHash };
  const column = trackColumn(target.track);
  const { rows } = await pool.query<EntryRow>({
    name: `config-page-${column}`,
    text: `
      select kind, resource_id, features, body from (
        select e.kind, e.resource_id, e.features, b.body,
          sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}) over page as running,
          row_number() over page as position
        from (${SETS[column]}) e join config_blob b on b.hash = e.blob_hash
        window page as (order by e.kind, e.resource_id)
      ) sized where running <= $6 or position = 1 order by kind, resource_id`,
    values: [clusterId, revision.toString(), after?.kind ?? '', after?.id ?? '', PAGE_ENTRIES, PULLED_BYTES / 4],
  });
  const page = create(ConfigPageSchema, { checkpoint: position(checkpoint), entries: rows.map(toEntry) });
  const end = rows.at(-1);
  if (end && (await hasMore(pool, clusterId, checkpoint, end))) {
    page.nextPageToken = formatToken(checkpoint, { kind: end.kind, id: end.resource_id });
  }
  return page;
}

/** Rows of a track that are live at the revision ($2) after a name ($3, $4), in order, at most $5. */
const rowsOf = (track: 'S' | 'C', more = '') => `
  select kind, resource_id, features, blob_hash from config_entry e
    where cluster_id = $1 and track = '${track}' and from_revision <= $2
      and (to_revision is null or to_revision > $2) and (kind, resource_id) > ($3, $4) ${more}
    order by kind, resource_id limit $5`;

/** What nodes of each track run: those of a canary what it has over the stable entries, and the stable ones else. */
const SETS = {
  S: rowsOf('S'),
  C: `
  select * from (
    (${rowsOf(
      'S',
      `and not exists (select from config_entry c where c.cluster_id = $1 and c.track = 'C' and c.kind = e.kind
        and c.resource_id = e.resource_id and c.from_revision <= $2 and (c.to_revision is null or c.to_revision > $2))`,
    )})
    union all (${rowsOf('C', 'and blob_hash is not null')})) shown order by kind, resource_id limit $5`,
};

async function hasMore(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  { track, revision }: TrackPlace,
  after: EntryRow,
): Promise<boolean> {
  const column = trackColumn(track);
  const { rows } = await pool.query({
    name: `config-page-more-${column}`,
    text: SETS[column],
    values: [clusterId, revision.toString(), after.kind, after.resource_id, 1],
  });
  return rows.length > 0;
}

interface PageToken extends TrackPlace {
  epoch: bigint;
  after: { kind: string; id: string };
}

function formatToken({ epoch, track, revision }: ConfigPlace, after: PageToken['after']): string {
  const place = [String(epoch), trackColumn(track), String(revision)];
  return Buffer.from(JSON.stringify([...place, after.kind, after.id])).toString('base64url');
}

/** Null for what no page ever carried. */
function parseToken(token: string): PageToken | null {
  if (token === '' || token.length > 1024) return null;
  const text = Buffer.from(token, 'base64url').toString();
  const match = /^\["([0-9]{1,19})","([SC])","([0-9]{1,18})",("(?:[^"\\]|\\.)*"),("(?:[^"\\]|\\.)*")\]$/.exec(text);
  if (!match) return null;
  try {
    const [kind, id] = JSON.parse(`[${match[4]},${match[5]}]`) as [string, string];
    if (kind.includes('\0') || id.includes('\0')) return null;
    const track = match[2] === 'C' ? Track.CANARY : Track.STABLE;
    return { epoch: BigInt(match[1]!), track, revision: BigInt(match[3]!), after: { kind, id } };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
