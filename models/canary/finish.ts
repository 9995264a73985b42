// Ends the canary of a cluster: everybody gets what it ran, or its nodes get again what everybody runs.
import type { Tx } from '../../runtime/write.ts';
import type { AuditRecord } from '../audit-entry.ts';
import { type Difference, type EntryName, keyOf, type LiveEntry, lockHead, writeRevision } from '../write-revision.ts';
import { type Finding, noteEnd, type RolloutOutcome } from './rollout.ts';

export interface CanaryEnd {
  outcome: RolloutOutcome;
  /** Why it was aborted, where it was not by hand. */
  finding?: Finding;
  audit?: AuditRecord;
}

/** Publishes for everybody what the canary runs; answers the revision, null where no canary runs. */
export async function promoteCanary(tx: Tx, clusterId: string, { audit, ...end }: CanaryEnd): Promise<string | null> {
  if (!(await lockHead(tx, clusterId, [])).canary) return null;
  const overlays = await overlaysOf(tx, clusterId);
  // Again for what is live of them, and the sums of their buckets.
  const head = await lockHead(tx, clusterId, overlays);
  const live = new Map(head.entries.map((entry) => [keyOf(entry), entry]));
  const differences = overlays.map((overlay) => becoming(live.get(keyOf(overlay)), overlay));
  const note = { clusterId, reason: 'rollout_promoted', params: { revision: head.canary!.revision } };
  const revision = await writeRevision(tx, { ...note, ...(audit ? { audit } : {}) }, head, differences, { ends: true });
  await noteEnd(tx, clusterId, { ...end, revision });
  return revision;
}

/** Takes from the canary's nodes what only they run; answers the revision, null where no canary runs. */
export async function abortCanary(tx: Tx, clusterId: string, { audit, ...end }: CanaryEnd): Promise<string | null> {
  const head = await lockHead(tx, clusterId, []);
  if (!head.canary) return null;
  const note = { clusterId, reason: 'rollout_rollback', params: { revision: head.canary.revision } };
  const revision = await writeRevision(tx, { ...note, ...(audit ? { audit } : {}) }, head, [], { ends: true });
  await noteEnd(tx, clusterId, { ...end, revision });
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
