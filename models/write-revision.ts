// Writing a revision: the head of a cluster under its lock, and the entries that differ with the sums that follow.
import { bucketOf, entryHash, fromSum, moveSum, toSum } from '../proto/entry-hash.ts';
import type { Actor } from '../runtime/call.ts';
import type { Tx } from '../runtime/write.ts';
import { type AuditRecord, auditArguments } from './audit-entry.ts';
import type { CompiledEntry } from './entries/kind.ts';
import { snapshotOf } from './settings-snapshot.ts';

export interface EntryName {
  kind: string;
  id: string;
}

export interface LiveEntry extends EntryName {
  bucket: number;
  hash: string;
  features: string[];
  compilerVersion: number;
  /** Removed, because its owner ends. */
  ended: boolean;
}

export interface Head {
  epoch: string;
  revision: string;
  setHash: string;
  entryCount: number;
  entries: LiveEntry[];
  buckets: Record<string, string>;
}

/** What an entry becomes. Without a body it is one of before: bytes and settings are known by their hashes. */
export interface WrittenEntry extends Pick<CompiledEntry, 'features' | 'refs' | 'settings'> {
  hash: Buffer;
  body: Uint8Array | null;
  /** SHA-256 of the settings, hexadecimal, of an entry of before. */
  settingsHash?: string;
  compilerVersion: number;
  owner: string | null;
}

export interface Difference extends EntryName {
  bucket: number;
  before: LiveEntry | undefined;
  after: WrittenEntry | undefined;
}

/** What a revision is called, by whom, and the audit entry that comes with it. */
export interface RevisionNote {
  clusterId: string;
  /** Reason code (specification: Events) and its parameters. */
  reason: string;
  params?: Record<string, unknown>;
  /** Who is named in the revision; the call's actor unless given. */
  actor?: Actor;
  /** The change's audit entry, which is written with the revision, and without one when nothing differs. */
  audit?: AuditRecord;
  /** Where the entries come from; saved settings unless given. */
  source?: 'save' | 'rollback';
}

/**
 * Takes the cluster's head lock and answers the head with the live entries of the names, and all of the owners in `ends`.
 */
export async function lockHead(
  tx: Tx,
  clusterId: string,
  names: readonly EntryName[],
  ends: readonly string[] = [],
): Promise<Head> {
  const { rows } = await tx.sql.raw<{ rows: { head: Head }[] }>('select config_lock_all(?, ?, ?, ?, ?) as head', [
    clusterId,
    names.map(({ kind, id }) => bucketOf(kind, id)) as never,
    names.map(({ kind }) => kind) as never,
    names.map(({ id }) => id) as never,
    ends as never,
  ]);
  return rows[0]!.head;
}

/** Writes the next revision of a head that this transaction has locked; answers its number. */
export async function writeRevision(
  tx: Tx,
  { clusterId, reason, params, actor, audit, source = 'save' }: RevisionNote,
  head: Head,
  differences: readonly Difference[],
): Promise<string> {
  const number = (BigInt(head.revision) + 1n).toString();
  const sums = new Map<number, bigint>();
  const features = new Map<string, number>();
  let total = toSum(Buffer.from(head.setHash, 'hex'));
  let count = head.entryCount;
  for (const { kind, id, bucket, before, after } of differences) {
    const removed = before ? [entryHash(kind, id, Buffer.from(before.hash, 'hex'), before.features)] : [];
    const added = after ? [entryHash(kind, id, after.hash, after.features)] : [];
    total = moveSum(total, removed, added);
    const sum = sums.get(bucket) ?? toSum(Buffer.from(head.buckets[bucket] ?? '', 'hex'));
    sums.set(bucket, moveSum(sum, removed, added));
    count += added.length - removed.length;
    for (const feature of before?.features ?? []) features.set(feature, (features.get(feature) ?? 0) - 1);
    for (const feature of after?.features ?? []) features.set(feature, (features.get(feature) ?? 0) + 1);
  }
  const entries = differences.map(({ kind, id, bucket, after }) => {
    const snapshot = after?.settings && snapshotOf(after.settings);
    return {
      kind,
      id,
      bucket,
      features: after?.features ?? [],
      refs: after?.refs ?? [],
      compilerVersion: after?.compilerVersion ?? 0,
      owner: after?.owner ?? null,
      settings: snapshot?.json,
      settingsHash: snapshot?.hash ?? after?.settingsHash,
    };
  });
  const values = [
    clusterId,
    number,
    fromSum(total),
    count,
    reason,
    JSON.stringify(params ?? {}),
    JSON.stringify(actor ?? tx.call.actor),
    source,
    JSON.stringify(entries),
    differences.map(({ after }) => after?.hash ?? null),
    differences.map(({ after }) => (after?.body ? Buffer.from(after.body) : null)),
    [...sums.keys()],
    [...sums.values()].map(fromSum),
    [...features.keys()],
    [...features.values()],
    ...(audit ? auditArguments([[tx, audit]]) : []),
  ];
  const marks = values.map(() => '?').join(', ');
  const statement = audit ? `select config_publish_recorded(${marks})` : `select config_publish(${marks})`;
  await tx.sql.raw(statement, values as never);
  tx.wake = true;
  tx.call.changes.push(`${clusterId}=${number}`);
  return number;
}

export function distinct<T extends EntryName>(names: readonly T[]): T[] {
  return [...new Map(names.map((name) => [keyOf(name), name])).values()];
}

export function keyOf({ kind, id }: EntryName): string {
  return `${kind}\0${id}`;
}
