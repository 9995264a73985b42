// Undoes one revision: the fields of saved settings that it changed return to their values of before, and are published as
// a save publishes them. Whatever was saved since stays.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { revisions } from '../../contract/resources/revisions.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { revisionPlace, revisionReason } from '../../models/config/config-revision.ts';
import { type ENTRY_KINDS, kindNamed } from '../../models/config/entry-kinds.ts';
import { type EntryVersions, triedEntries } from '../../models/config/entry-versions.ts';
import { settingsDiff } from '../../models/config/settings-diff.ts';
import { isUndoable } from '../../models/config/undoable.ts';
import { lockSites, sitesOfCluster } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { publishRestored, type RestoredPart, savePart } from './publish-restored.ts';
import { type Settings, shown } from './restore-settings.ts';
import { MAX_RESTORED, RESTORERS, restorerOf } from './restorers.ts';
import { undoFields } from './undo-fields.ts';

/** Entries looked at of one revision. */
const MOST_ENTRIES = 5000;
/** Fields named in a refusal. */
const NAMED_FIELDS = 20;

interface Conflict {
  kind: string;
  id: string;
  path: string;
}

/**
 * Throws the contract's errors. A second undo of the same revision finds the earlier values in place: it changes nothing
 * and succeeds.
 */
export async function undoRevision(
  runtime: Runtime,
  { id: clusterId, revision }: Input<typeof revisions.undoRevision>,
  call: Call,
): Promise<Output<typeof revisions.undoRevision>> {
  return write(runtime, call, { clusterId }, async (tx) => {
    const { sql } = tx;
    const { kept } = (await revisionPlace(sql, clusterId, revision)) ?? fail('CLUSTER_NOT_FOUND');
    if (!kept) fail('REVISION_NOT_FOUND', { revision });
    const { reason, changed } =
      (await revisionReason(sql, clusterId, revision)) ?? fail('REVISION_NOT_FOUND', { revision });
    if (!isUndoable(reason, changed)) fail('UNDO_UNAVAILABLE', { reason });
    const found = await changedSettings(sql, clusterId, revision);
    if (found.length === 0) fail('UNDO_UNAVAILABLE', { reason });
    if (found.length > MAX_RESTORED) fail('ROLLBACK_TOO_LARGE', { limit: MAX_RESTORED });
    const cluster = (await Cluster.locked(sql, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
    await lockSites(sql, sitesOf(found));
    const parts = await undoneParts(tx, clusterId, found);
    for (const part of parts) await savePart(tx, clusterId, part);
    const number = await publishRestored(tx, cluster, parts, {
      reason: 'revision_undone',
      action: 'revision.undo',
      params: { revision },
    });
    return { revision: number, restoredFields: parts.reduce((sum, { fields }) => sum + fields.length, 0) };
  });
}

/** Settings that the revision changed, of things that it neither made nor ended. */
async function changedSettings(sql: Tx['sql'], clusterId: string, revision: string): Promise<EntryVersions[]> {
  const span = { from: (BigInt(revision) - 1n).toString(), to: revision };
  const kinds = RESTORERS.map(({ kind }) => kind);
  const found = await triedEntries(sql, clusterId, span, kinds, MOST_ENTRIES);
  return found.filter((entry) => {
    const [before, after] = versionsOf(entry);
    return before !== null && after !== null && settingsDiff(before, after).length > 0;
  });
}

/** Settings before and after; null: unknown, or there was nothing. */
function versionsOf({ kind: name, from, to }: EntryVersions): [before: Settings | null, after: Settings | null] {
  const { defaults } = kindNamed(name);
  const { derived = [] } = restorerOf(name);
  const versions = [from, to].map((entry) => {
    if (!entry) return (defaults as Settings | undefined) ?? null;
    return entry.settings && { ...defaults, ...entry.settings };
  });
  return versions.map((settings) => settings && without(settings, derived)) as [Settings | null, Settings | null];
}

/** What differs from the saved settings without the change. Throws UNDO_UNAVAILABLE and UNDO_CHANGED_LATER. */
async function undoneParts(tx: Tx, clusterId: string, found: readonly EntryVersions[]): Promise<RestoredPart[]> {
  const there = await sitesOfCluster(tx.sql, clusterId, sitesOf(found));
  const parts: RestoredPart[] = [];
  const conflicts: Conflict[] = [];
  for (const [name, entries] of Map.groupBy(found, ({ kind }) => kind)) {
    const kind = kindNamed(name);
    const { whole = false, derived = [], locks } = restorerOf(name);
    const compiled = await kind.compile(
      tx.sql,
      clusterId,
      entries.map(({ id }) => id),
    );
    for (const entry of entries) {
      const { id, from, to } = entry;
      const thing = kind.partOf?.(id) ?? id;
      if (locks === 'site' && !there.has(thing)) fail('UNDO_UNAVAILABLE', { reason: 'gone' });
      const saved = (compiled.get(id)?.settings ?? kind.defaults) as Settings | undefined;
      if (!saved) fail('UNDO_UNAVAILABLE', { reason: 'gone' });
      const [before, after] = versionsOf(entry) as [Settings, Settings];
      const own = without(saved, derived);
      const undone = whole ? undoWhole(own, before, after) : undoFields(own, before, after);
      const paths = undone.conflicts.length === 0 ? [] : namesOf(kind, undone.conflicts, [own, before, after]);
      conflicts.push(...paths.map((path) => ({ kind: name, id: thing, path })));
      const settings = { ...(whole ? {} : saved), ...(undone.settings as Settings) };
      const fields = settingsDiff(shown(kind, own), shown(kind, without(settings, derived)));
      const brought = (from?.refs ?? []).filter((ref) => !to?.refs.includes(ref));
      if (fields.length > 0) parts.push({ kind: name, id, thing, settings, fields, brought });
    }
  }
  if (conflicts.length > 0) {
    fail('UNDO_CHANGED_LATER', { fields: conflicts.slice(0, NAMED_FIELDS), count: conflicts.length });
  }
  return parts;
}

function undoWhole(saved: Settings, before: Settings, after: Settings): { settings: Settings; conflicts: string[] } {
  if (settingsDiff(saved, before).length === 0) return { settings: saved, conflicts: [] };
  const later = settingsDiff(after, saved);
  return { settings: before, conflicts: later.map(({ path }) => path) };
}

/** The fields as pages name them, as far as they can be told apart so. */
function namesOf(
  kind: (typeof ENTRY_KINDS)[number],
  conflicts: string[],
  versions: [Settings, Settings, Settings],
): string[] {
  const [saved, before, after] = versions.map((settings) => shown(kind, settings)) as [Settings, Settings, Settings];
  const named = undoFields(saved, before, after).conflicts;
  return named.length > 0 ? named : conflicts;
}

function without(settings: Settings, fields: readonly string[]): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([field]) => !fields.includes(field)));
}

function sitesOf(found: readonly EntryVersions[]): string[] {
  const ids = found.flatMap(({ kind, id }) =>
    restorerOf(kind).locks === 'site' ? [kindNamed(kind).partOf?.(id) ?? id] : [],
  );
  return [...new Set(ids)];
}
