// Ends the canary of a cluster: everybody gets what it ran, or its nodes get again what everybody runs.
import { fail } from '../../contract/errors.ts';
import type { Finding } from '../../contract/resources/rollout.ts';
import type { Tx } from '../../runtime/write.ts';
import {
  type Difference,
  type EntryName,
  keyOf,
  type LiveEntry,
  lockHead,
  type OverlayDifference,
  writeRevision,
} from '../config/write-revision.ts';
import { noteEnd, notePromoting, type RolloutOutcome } from './cluster-canary.ts';

/** Entries that one revision of a promotion gives to all nodes. */
export const MAX_PROMOTED = 2_000;

/** Kinds that entries of others refer to: all nodes have them before those, and lose them after those. */
const REFERENCED = ['ip-list', 'ip-list-chunk'];

/**
 * Gives all nodes what the canary runs, at most `limit` entries of it: the rest follows by {@link promoteNext}, piece by
 * piece. Answers the revision. Throws ROLLOUT_NOT_ACTIVE where no canary runs.
 */
export async function promoteCanary(
  tx: Tx,
  clusterId: string,
  outcome: RolloutOutcome,
  limit = MAX_PROMOTED,
): Promise<string> {
  const { canary, promoting } = await lockHead(tx, clusterId, []);
  if (!canary || promoting !== null) fail('ROLLOUT_NOT_ACTIVE');
  return promotePiece(tx, clusterId, outcome, limit);
}

/** The next piece of a promotion under way; whether another one follows. */
export async function promoteNext(tx: Tx, clusterId: string, limit = MAX_PROMOTED): Promise<boolean> {
  const { canary, promoting } = await lockHead(tx, clusterId, []);
  if (!canary || promoting === null) return false;
  await promotePiece(tx, clusterId, promoting as RolloutOutcome, limit);
  return (await lockHead(tx, clusterId, [])).promoting !== null;
}

async function promotePiece(tx: Tx, clusterId: string, outcome: RolloutOutcome, limit: number): Promise<string> {
  const found = await overlaysOf(tx, clusterId, limit + 1);
  const overlays = found.slice(0, limit);
  // Again for what is live of them, and the sums of their buckets.
  const head = await lockHead(tx, clusterId, overlays);
  const live = new Map(head.entries.map((entry) => [keyOf(entry), entry]));
  const differences = overlays.map((overlay) => becoming(live.get(keyOf(overlay)), overlay));
  const note = { clusterId, reason: 'rollout_promoted', params: { revision: head.canary!.revision } };
  if (found.length <= limit) {
    const revision = await writeRevision(tx, note, head, differences, { ends: true });
    await noteEnd(tx, clusterId, { outcome, revision });
    return revision;
  }
  const over = new Map(head.canary!.entries.map((entry) => [keyOf(entry), entry]));
  const closed = differences.map(({ kind, id, bucket, before, after }): OverlayDifference => {
    return {
      kind,
      id,
      bucket,
      owner: null,
      stable: [before, after],
      before: over.get(keyOf({ kind, id })),
      after: undefined,
    };
  });
  const revision = await writeRevision(tx, note, head, differences, { overlays: closed });
  await notePromoting(tx, clusterId, { outcome, candidate: revision });
  return revision;
}

/** Takes from the canary's nodes what only they run; answers the revision. Throws ROLLOUT_NOT_ACTIVE where none runs. */
export async function abortCanary(
  tx: Tx,
  clusterId: string,
  outcome: RolloutOutcome,
  finding?: Finding,
): Promise<string> {
  const head = await lockHead(tx, clusterId, []);
  // Part of a promotion under way is on all nodes: a rollback takes that back.
  if (!head.canary || head.promoting !== null) fail('ROLLOUT_NOT_ACTIVE');
  const note = { clusterId, reason: 'rollout_rollback', params: { revision: head.canary.revision } };
  const revision = await writeRevision(tx, note, head, [], { ends: true });
  await noteEnd(tx, clusterId, { outcome, revision, finding });
  return revision;
}

interface Overlay extends EntryName {
  bucket: number;
  /** Null: the canary does not have the entry. */
  hash: Buffer | null;
  features: string[];
  refs: string[];
  compilerVersion: number;
  owner: string | null;
  /** SHA-256 of the settings, hexadecimal; null: none are kept. */
  settingsHash: string | null;
}

async function overlaysOf(tx: Tx, clusterId: string, limit: number): Promise<Overlay[]> {
  const { rows } = await tx.sql.raw<{ rows: Overlay[] }>(
    `select kind, resource_id as id, bucket, blob_hash as hash, features, refs, owner,
         compiler_version as "compilerVersion", encode(settings_hash, 'hex') as "settingsHash"
       from config_entry where cluster_id = ? and track = 'C' and to_revision is null
      order by case when kind <> all(?) then 1 when blob_hash is null then 2 else 0 end, kind, resource_id limit ?`,
    [clusterId, REFERENCED as never, limit],
  );
  return rows;
}

function becoming(
  before: LiveEntry | undefined,
  { kind, id, bucket, hash, settingsHash, ...entry }: Overlay,
): Difference {
  const after = hash && { ...entry, hash, body: null, ...(settingsHash === null ? {} : { settingsHash }) };
  return { kind, id, bucket, before, after: after ?? undefined };
}
