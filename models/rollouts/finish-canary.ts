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
  writeRevision,
} from '../config/write-revision.ts';
import { noteEnd, type RolloutOutcome } from './cluster-canary.ts';

/** Publishes for everybody what the canary runs; answers the revision. Throws ROLLOUT_NOT_ACTIVE where none runs. */
export async function promoteCanary(tx: Tx, clusterId: string, outcome: RolloutOutcome): Promise<string> {
  if (!(await lockHead(tx, clusterId, [])).canary) fail('ROLLOUT_NOT_ACTIVE');
  const overlays = await overlaysOf(tx, clusterId);
  // Again for what is live of them, and the sums of their buckets.
  const head = await lockHead(tx, clusterId, overlays);
  const live = new Map(head.entries.map((entry) => [keyOf(entry), entry]));
  const differences = overlays.map((overlay) => becoming(live.get(keyOf(overlay)), overlay));
  const note = { clusterId, reason: 'rollout_promoted', params: { revision: head.canary!.revision } };
  const revision = await writeRevision(tx, note, head, differences, { ends: true });
  await noteEnd(tx, clusterId, { outcome, revision });
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
  if (!head.canary) fail('ROLLOUT_NOT_ACTIVE');
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

async function overlaysOf(tx: Tx, clusterId: string): Promise<Overlay[]> {
  const { rows } = await tx.sql.raw<{ rows: Overlay[] }>(
    `select kind, resource_id as id, bucket, blob_hash as hash, features, refs, owner,
         compiler_version as "compilerVersion", encode(settings_hash, 'hex') as "settingsHash"
       from config_entry where cluster_id = ? and track = 'C' and to_revision is null`,
    [clusterId],
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
