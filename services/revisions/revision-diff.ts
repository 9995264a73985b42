// What an operator reads of a revision: which settings it changed, from what to what.
import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type ObjectChange, type revisions, SHOWN_FIELDS } from '../../contract/resources/revisions.ts';
import { revisionPlace } from '../../models/config/config-revision.ts';
import { ENTRY_KINDS } from '../../models/config/entry-kinds.ts';
import { type EntryVersions, type StoredEntry, triedEntries } from '../../models/config/entry-versions.ts';
import { ownedSubjects } from '../../models/config/revision-subject.ts';
import { settingsDiff } from '../../models/config/settings-diff.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Entries looked at between two revisions; what is beyond is not told. */
const MOST_ENTRIES = 5000;
const KINDS = new Map(ENTRY_KINDS.map((kind) => [kind.kind, kind]));

/** Throws CLUSTER_NOT_FOUND and REVISION_NOT_FOUND. */
export async function diffRevisions(
  { pools }: Runtime,
  { id, revision, against, ...page }: Input<typeof revisions.revisionDiff>,
): Promise<Output<typeof revisions.revisionDiff>> {
  await assertKept(pools.api, id, revision);
  const from = against ?? (BigInt(revision) - 1n).toString();
  if (from !== '0') await assertKept(pools.api, id, from);
  const found = await triedEntries(pools.api, id, { from, to: revision }, [...KINDS.keys()], MOST_ENTRIES);
  const objects = [...Map.groupBy(found, objectOf).values()];
  const { limit, offset } = pageOf(page);
  const shown = objects.slice(offset, offset + limit);
  const subjects = await ownedSubjects(
    pools.api,
    shown.map(([first]) => (first!.to ?? first!.from)!.owner),
  );
  return { items: shown.map((entries, index) => presentObject(entries, subjects[index]!)), total: objects.length };
}

async function assertKept(sql: Runtime['pools']['api'], clusterId: string, revision: string): Promise<void> {
  const { kept } = (await revisionPlace(sql, clusterId, revision)) ?? fail('CLUSTER_NOT_FOUND');
  if (!kept) fail('REVISION_NOT_FOUND', { revision });
}

/** Parts of one thing are one object: chunks that say so, or of whose settings nothing is kept. */
function objectOf({ kind, id, from, to }: EntryVersions): string {
  const owner = (to ?? from)!.owner;
  const settings = [from, to].some((entry) => entry?.settings);
  return JSON.stringify(
    owner !== null && !settings ? [kind, owner] : [kind, owner, KINDS.get(kind)!.partOf?.(id) ?? id],
  );
}

function presentObject(entries: readonly EntryVersions[], subject: ObjectChange['subject']): ObjectChange {
  const [{ kind, id, from, to }] = entries as [EntryVersions];
  const [before, after] = [settingsOf(entries, 'from'), settingsOf(entries, 'to')];
  const whole = entries.length === 1 && !KINDS.get(kind)!.partOf;
  return {
    kind,
    id: subject?.id ?? id,
    subject,
    change: whole && !from ? 'added' : whole && !to ? 'removed' : 'changed',
    settingsKnown: before !== null && after !== null,
    fields: before && after ? settingsDiff(before, after).slice(0, SHOWN_FIELDS) : [],
  };
}

/** Of all parts; null: not known of one. */
function settingsOf(entries: readonly EntryVersions[], end: 'from' | 'to'): object | null {
  const parts = entries.map((entry) => partOf(entry.kind, entry[end]));
  return parts.includes(null) ? null : Object.assign({}, ...parts);
}

/** Without an entry, what its kind does then. */
function partOf(name: string, entry: StoredEntry | null): object | null {
  const { defaults, shown = (settings) => settings } = KINDS.get(name)!;
  if (!entry) return defaults ? shown(defaults) : {};
  return entry.settings && shown({ ...defaults, ...entry.settings });
}
