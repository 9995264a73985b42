// Writing a revision: the head of a cluster under its lock, and the entries that differ with the sums that follow.
import { addSums, bucketOf, fromSum, toSum } from '../../proto/entry-hash.ts';
import type { Actor } from '../../runtime/call.ts';
import type { Tx } from '../../runtime/write.ts';
import { type AuditRecord, auditArguments } from '../audit/audit-entry.ts';
import { prepared, type Statement } from '../db/named-statement.ts';
import type { CompiledEntry } from './entry-kind.ts';
import { SetMove } from './set-move.ts';
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
  /** What it was compiled from, where a change could be one of a canary and the kind keeps it. */
  settings?: object | null;
}

/** An entry that a canary has over the stable one; without a hash it removes it. */
export interface OverlaidEntry extends Omit<LiveEntry, 'hash'> {
  hash: string | null;
}

/** Where a set of entries is, and what is live of the names asked about. */
interface SetHead<Entry> {
  revision: string;
  setHash: string;
  entryCount: number;
  entries: Entry[];
  /** Sums of the names' buckets, hexadecimal; those of a canary as differences to the stable ones. */
  buckets: Record<string, string>;
}

export interface Head extends SetHead<LiveEntry> {
  epoch: string;
  /** The next number is beyond it. */
  numberFloor: string;
  /** Whether changes are tried by a canary first. */
  tries: boolean;
  /** Whether a change that went to everybody is taken back where visitors suffer. */
  undoes: boolean;
  /** The outcome of the promotion under way, which gives all nodes piece by piece what the canary runs; null: there is none. */
  promoting: string | null;
  /** What the canary that runs has over the stable entries. */
  canary: SetHead<OverlaidEntry> | null;
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

/** A stable entry and what becomes of it. */
export interface Difference extends EntryName {
  bucket: number;
  before: LiveEntry | undefined;
  after: WrittenEntry | undefined;
}

/** What a canary has over the stable entry of the name, and what becomes of that. */
export interface OverlayDifference extends EntryName {
  bucket: number;
  owner: string | null;
  /** The stable entry before and after the publication. */
  stable: readonly [before: Identity | undefined, after: Identity | undefined];
  before: OverlaidEntry | undefined;
  /** Null: the canary does not have the entry; undefined: it has the stable one. */
  after: WrittenEntry | null | undefined;
}

/** What an entry adds to the hash of its set. */
export interface Identity {
  /** Of the body, hexadecimal or its bytes. */
  hash: string | Buffer;
  features: readonly string[];
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
  const [row] = await prepared<{ head: Head }>(tx.sql, 'config-lock-all', {
    text: 'select config_lock_all(?, ?, ?, ?, ?) as head',
    bindings: [
      clusterId,
      names.map(({ kind, id }) => bucketOf(kind, id)),
      names.map(({ kind }) => kind),
      names.map(({ id }) => id),
      ends,
    ],
  });
  return row!.head;
}

/** What becomes of a canary with a publication. */
export interface CanaryMove {
  overlays?: readonly OverlayDifference[];
  /** It ends, and leaves nothing of what it had over the stable entries. */
  ends?: boolean;
}

/**
 * Writes the next revision of a head that this transaction has locked; answers its number. While a canary runs the stable
 * entries stay where they are unless one of them differs, or the canary ends. `beside` is written in the same round trip.
 */
export async function writeRevision(
  tx: Tx,
  { clusterId, reason, params, actor, audit, source = 'save' }: RevisionNote,
  head: Head,
  differences: readonly Difference[],
  { overlays = [], ends = false }: CanaryMove = {},
  beside?: Statement,
): Promise<string> {
  const canary = ends ? null : head.canary;
  const number = nextNumber(head);
  const moved = new SetMove();
  for (const difference of differences) moved.move(difference, [difference.before], [difference.after]);
  const stands = canary === null || differences.length > 0;
  const over = new SetMove();
  for (const overlay of overlays) {
    const [before, after] = overlay.stable;
    over.move(overlay, [after, shownBy(overlay.before, before)], [before, shownBy(overlay.after, after)]);
  }
  const changes = [
    ...differences.map(({ after, ...name }) => ({ track: 'S' as const, name, after })),
    ...overlays.map(({ after, ...name }) => ({ track: 'C' as const, name, after })),
  ];
  const heads = {
    ...(stands ? { stable: headAfter(head, [moved]) } : {}),
    ...(canary ? { canary: headAfter(canary, [moved, over]) } : {}),
    ends,
  };
  const values = [
    clusterId,
    number,
    JSON.stringify(heads),
    JSON.stringify({ reason, params: params ?? {}, actor: actor ?? tx.call.actor, source }),
    JSON.stringify(changes.map(({ track, name, after }) => ({ track, ...row(name, after) }))),
    changes.map(({ after }) => after?.hash ?? null),
    changes.map(({ after }) => (after?.body ? Buffer.from(after.body) : null)),
    JSON.stringify([...moved.sumsAfter('S', head.buckets), ...over.sumsAfter('C', canary?.buckets ?? {})]),
    JSON.stringify([...moved.featureMoves('S'), ...over.featureMoves('C')]),
    ...(audit ? auditArguments([[tx, withPublished(audit, { clusterId, revision: number })]]) : [null, null]),
  ];
  const text = `select config_write(${values.map(() => '?').join(', ')})`;
  if (beside === undefined) await prepared(tx.sql, 'config-write', { text, bindings: values });
  else {
    const both = { text: `with beside as (${beside.text}) ${text}`, bindings: [...beside.bindings, ...values] };
    await prepared(tx.sql, 'config-write-beside', both);
  }
  tx.wake = true;
  tx.call.changes.push(`${clusterId}=${number}`);
  return number;
}

/** The entry names the revision that it led to: History shows what that changed, and undoes it. */
function withPublished(
  { metadata, ...record }: AuditRecord,
  published: { clusterId: string; revision: string },
): AuditRecord {
  return { ...record, metadata: { ...metadata, published: [published] } };
}

/** One sequence for what everybody runs and what a canary runs. */
export function nextNumber({ revision, canary, numberFloor }: Head): string {
  let last = BigInt(revision);
  for (const number of [BigInt(canary?.revision ?? 0), BigInt(numberFloor)]) if (number > last) last = number;
  return (last + 1n).toString();
}

/** What a canary runs where it has this over the stable entry. */
function shownBy(
  overlay: { hash: string | Buffer | null; features: readonly string[] } | null | undefined,
  stable: Identity | undefined,
): Identity | undefined {
  if (overlay === undefined) return stable;
  return overlay === null || overlay.hash === null ? undefined : { hash: overlay.hash, features: overlay.features };
}

function headAfter({ setHash, entryCount }: SetHead<unknown>, moves: readonly SetMove[]): object {
  const sum = moves.reduce((total, move) => addSums(total, move.total), toSum(Buffer.from(setHash, 'hex')));
  return {
    setHash: fromSum(sum).toString('hex'),
    entryCount: moves.reduce((count, move) => count + move.count, entryCount),
  };
}

function row(
  { kind, id, bucket, owner = null }: EntryName & { bucket: number; owner?: string | null },
  after: WrittenEntry | null | undefined,
): object {
  const snapshot = after?.settings && snapshotOf(after.settings);
  return {
    kind,
    id,
    bucket,
    features: after?.features ?? [],
    refs: after?.refs ?? [],
    compilerVersion: after?.compilerVersion ?? 0,
    owner: after ? after.owner : owner,
    settings: snapshot?.json,
    settingsHash: snapshot?.hash ?? after?.settingsHash,
    removes: after === null,
  };
}

export function distinct<T extends EntryName>(names: readonly T[]): T[] {
  return [...new Map(names.map((name) => [keyOf(name), name])).values()];
}

export function keyOf({ kind, id }: EntryName): string {
  return `${kind}\0${id}`;
}
