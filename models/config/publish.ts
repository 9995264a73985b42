// Publishing: which entries of a cluster changed, as one numbered revision in the change's transaction.
//
// Round trips under the cluster's head lock: take it and read what is live, compile (one query a kind, none for what the
// caller has compiled), write. Nothing else may be added here, because every change of the cluster waits for it.
import { fail } from '../../contract/errors.ts';
import { bodyHash, bucketOf } from '../../proto/entry-hash.ts';
import type { Tx } from '../../runtime/write.ts';
import { recordAudits } from '../audit/audit-entry.ts';
import { LOCK_PLATFORM } from '../db/locks.ts';
import { type Changes, publishChanges } from '../rollouts/publish-changes.ts';
import { splitChange, type TriedEntry } from '../rollouts/split-change.ts';
import type { Beside, CompiledEntry, EntryKind } from './entry-kind.ts';
import { ENTRY_KINDS, kindNamed } from './entry-kinds.ts';
import { liveSettings } from './live-settings.ts';
import {
  distinct,
  type EntryName,
  type Head,
  keyOf,
  type LiveEntry,
  lockHead,
  type OverlaidEntry,
  type OverlayDifference,
  type RevisionNote,
  type WrittenEntry,
} from './write-revision.ts';

/** Larger bodies are refused: they travel to every node in one message. A kind can allow more. */
export const MAX_BODY_BYTES = 64 * 1024;
/** More entries than this in one publication are the caller's to split. */
export const MAX_ENTRIES = 2000;
/** Entries published at once for a new cluster. */
const ALL_BATCH = 500;

export interface ChangedEntry extends EntryName {
  /**
   * The entry as its kind compiles it from rows that the transaction has locked and written, null for none; read and
   * compiled here unless given.
   */
  compiled?: CompiledEntry | null;
  /**
   * What the entry refers to changed, and its settings did not: nodes get what they run with what is referred to now, those
   * that try something as the others. Saved settings are not looked at.
   */
  renews?: boolean;
}

export interface Publication extends Omit<RevisionNote, 'source'> {
  /** What the change touched; a kind that compiles to nothing removes its entry. */
  entries: readonly ChangedEntry[];
  /** What ends (models/config/entry-owner.ts): all of its live entries are removed, whatever their kinds. */
  ends?: readonly string[];
  /**
   * What is saved was saved before: nodes get it where they run something else, as after a rollback or a canary that was
   * aborted. Where they do not, nothing happened, and there is no audit entry either.
   */
  again?: boolean;
}

/**
 * Takes the cluster's head lock, compiles the entries, and publishes those that differ as the next revision. Answers
 * the revision's number as a decimal string, or null when nothing differs. Adds to the call's changes.
 * Throws PAYLOAD_TOO_LARGE for an entry above its limit, SERVICE_UNAVAILABLE when a newer version of the console
 * compiled an entry meanwhile.
 */
export async function publish(tx: Tx, publication: Publication): Promise<string | null> {
  return publishEntries(tx, publication, false);
}

/** As {@link publish}; `always` makes a revision of nothing, too. */
async function publishEntries(tx: Tx, publication: Publication, always: boolean): Promise<string | null> {
  const { clusterId, entries, ends = [], audit, again = false } = publication;
  const names = distinct([...entries, ...(ends.length > 0 ? dependants() : [])]);
  if (names.length > MAX_ENTRIES)
    throw new Error(`${names.length} entries in one publication, which is over the limit`);
  const head = await lockHead(tx, clusterId, names, ends);
  const changes = await findChanges(tx, clusterId, affected(names, entries, head), head);
  if (changes.differences.length + changes.overlays.length === 0 && !always) {
    if (audit && !again) await recordAudits([[tx, audit]]);
    return null;
  }
  return publishChanges(tx, publication, head, changes);
}

/**
 * Publishes everything a cluster should have: for a new cluster, which gets its first revision here even when it has
 * no entry. Waits for platform changes under way, so that none is missed. Answers the last revision's number.
 */
export async function publishAll(tx: Tx, publication: Omit<Publication, 'entries'>): Promise<string | null> {
  await tx.sql.raw(LOCK_PLATFORM);
  let latest: string | null = null;
  let batch: EntryName[] = [];
  const flush = async (always: boolean) => {
    latest = (await publishEntries(tx, { ...publication, entries: batch }, always)) ?? latest;
    batch = [];
  };
  for (const kind of ENTRY_KINDS) {
    for await (const ids of kind.list(tx.sql, publication.clusterId)) {
      for (const id of ids) {
        batch.push({ kind: kind.kind, id });
        if (batch.length === ALL_BATCH) await flush(false);
      }
    }
  }
  await flush(latest === null);
  return latest;
}

/** Entries that follow when one of another kind ends. */
function dependants(): EntryName[] {
  return ENTRY_KINDS.filter(({ dependsOn = [] }) => dependsOn.length > 0).map(({ kind }) => ({ kind, id: '' }));
}

/** The names to compile: those asked for that do not end, and those that depend on a kind of which one does. */
function affected(names: readonly ChangedEntry[], asked: readonly EntryName[], head: Head): ChangedEntry[] {
  const ended = [...head.entries, ...(head.canary?.entries ?? [])].filter((entry) => entry.ended);
  if (ended.length === 0 && names.length === asked.length) return [...names];
  const gone = new Set(ended.map(keyOf));
  const wanted = new Set(asked.map(keyOf));
  const kinds = new Set(ended.map(({ kind }) => kind));
  return names.filter(
    (name) =>
      !gone.has(keyOf(name)) &&
      (wanted.has(keyOf(name)) || kindNamed(name.kind).dependsOn?.some((kind) => kinds.has(kind))),
  );
}

async function findChanges(tx: Tx, clusterId: string, names: readonly ChangedEntry[], head: Head): Promise<Changes> {
  const live = new Map(head.entries.map((entry) => [keyOf(entry), entry]));
  const overlaid = new Map((head.canary?.entries ?? []).map((entry) => [keyOf(entry), entry]));
  const changes = endedEntries(head, live);
  // What is saved during a promotion goes to all nodes, as what is promoted does: it closes what the canary has of the name.
  const tried = head.promoting === null && (head.tries || head.canary !== null);
  const saved = names.filter(({ renews }) => !renews);
  if (saved.length < names.length) {
    await addRenewed(
      tx,
      clusterId,
      changes,
      names.filter(({ renews }) => renews),
      { live, overlaid, tried },
    );
  }
  for (const [name, group] of Map.groupBy(saved, ({ kind }) => kind)) {
    const kind = kindNamed(name);
    const open = group.flatMap(({ id, compiled }) => (compiled === undefined ? [id] : []));
    const compiled = open.length > 0 ? await kind.compile(tx.sql, clusterId, open) : new Map<string, CompiledEntry>();
    for (const entry of group) {
      const { id } = entry;
      const [stable, overlay] = [live.get(keyOf(entry)), overlaid.get(keyOf(entry))];
      const now = entry.compiled === undefined ? (compiled.get(id) ?? null) : entry.compiled;
      const change = { id, bucket: bucketOf(name, id), stable, overlay, compiled: now, straight: !tried };
      addChange(changes, kind, { ...change, now: now ? written(kind, id, now) : undefined });
    }
  }
  return changes;
}

interface Known {
  live: ReadonlyMap<string, LiveEntry>;
  overlaid: ReadonlyMap<string, OverlaidEntry>;
  tried: boolean;
}

/** What nodes run, with what it refers to now. */
async function addRenewed(
  tx: Tx,
  clusterId: string,
  changes: Changes,
  names: readonly ChangedEntry[],
  { live, overlaid, tried }: Known,
): Promise<void> {
  for (const [name, group] of Map.groupBy(names, ({ kind }) => kind)) {
    const kind = kindNamed(name);
    const ids = group.map(({ id }) => id);
    const settings = await liveSettings(tx.sql, clusterId, name, ids);
    const renew = async (track: 'stable' | 'canary') => {
      const beside: Beside = async (other, of) => {
        const { stable, canary } = await liveSettings(tx.sql, clusterId, other, of);
        return track === 'stable' ? stable : new Map([...stable, ...canary]);
      };
      return (await kind.renewed?.(tx.sql, settings[track], beside)) ?? new Map();
    };
    const [ofAll, ofCanary] = [await renew('stable'), await renew('canary')];
    for (const entry of group) {
      const { id } = entry;
      const [stable, overlay] = [live.get(keyOf(entry)), overlaid.get(keyOf(entry))];
      // Settings that are not known cannot be renewed: the entry stays as it is.
      if ((stable && !ofAll.has(id)) || (overlay?.hash && !ofCanary.has(id))) continue;
      const renewed: CompiledEntry | null = stable ? ofAll.get(id) : null;
      const now: CompiledEntry | null = overlay ? (overlay.hash ? ofCanary.get(id) : null) : renewed;
      const change = { id, bucket: bucketOf(name, id), stable, overlay, compiled: now, straight: !tried };
      const passing = { ...kind, bypass: () => (stable ? renewed : undefined) };
      addChange(changes, passing, { ...change, now: now ? written(kind, id, now) : undefined });
    }
  }
}

/** What ends does so everywhere. */
function endedEntries({ entries, canary }: Head, live: ReadonlyMap<string, LiveEntry>): Changes {
  const differences = entries
    .filter(({ ended }) => ended)
    .map((before) => ({ kind: before.kind, id: before.id, bucket: before.bucket, before, after: undefined }));
  const overlays = (canary?.entries ?? [])
    .filter(({ ended }) => ended)
    .map((before): OverlayDifference => {
      const { kind, id, bucket } = before;
      return { kind, id, bucket, owner: null, stable: [live.get(keyOf(before)), undefined], before, after: undefined };
    });
  return { differences, overlays };
}

function addChange(changes: Changes, kind: EntryKind, entry: TriedEntry): void {
  const { difference, overlay } = splitChange(kind, entry, (compiled) => written(kind, entry.id, compiled));
  if (!difference && !overlay) return;
  const known = Math.max(entry.stable?.compilerVersion ?? 0, entry.overlay?.compilerVersion ?? 0);
  if (known > kind.compilerVersion) {
    // This process is older than the one that compiled the entry: its bytes could lack what the newer one knows.
    fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 5, reason: 'newer_compiler' });
  }
  if (difference) changes.differences.push(difference);
  if (overlay) changes.overlays.push(overlay);
}

function written(kind: EntryKind, id: string, compiled: CompiledEntry): WrittenEntry {
  const limit = kind.maxBodyBytes ?? MAX_BODY_BYTES;
  if (compiled.body.length > limit) {
    fail('PAYLOAD_TOO_LARGE', { kind: kind.kind, id, bytes: compiled.body.length, limit });
  }
  return {
    ...compiled,
    hash: bodyHash(compiled.body),
    compilerVersion: kind.compilerVersion,
    owner: kind.ownerOf(id),
  };
}
