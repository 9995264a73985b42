// Saved settings as an earlier revision had them: which differ from it, and putting them back. Without that the next save
// of a site would bring back what a rollback took away.
import { fail } from '../../contract/errors.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import type { EntryKind } from '../../models/config/entry-kind.ts';
import { kindNamed } from '../../models/config/entry-kinds.ts';
import { changedEntries, type EntryVersions } from '../../models/config/entry-versions.ts';
import { type FieldChange, settingsDiff } from '../../models/config/settings-diff.ts';
import { isRecord } from '../../models/config/settings-snapshot.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { lockSites, sitesOfCluster } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Tx } from '../../runtime/write.ts';
import { MAX_RESTORED, RESTORERS, restorerOf } from './restorers.ts';

/** Entries looked at for them. */
const MOST_ENTRIES = 5000;

type Sql = Runtime['pools']['api'];
export type Settings = Record<string, unknown>;

/** Settings of one thing that differ from those of the revision. */
export interface RestoredSettings {
  kind: string;
  id: string;
  owner: string | null;
  fields: FieldChange[];
  /** As they are to be saved: of the thing, or of those of its parts that differ. */
  parts: { id: string; settings: Settings }[];
}

/**
 * Saved settings that differ from those of the revision, of what has changed since it; fields that a rollback leaves
 * alone do not count. What was made since it, and what is gone, has none.
 */
export async function settingsToRestore(
  sql: Sql,
  clusterId: string,
  range: { revision: string; head: string },
): Promise<RestoredSettings[]> {
  const kinds = RESTORERS.map(({ kind }) => kind);
  const span = { from: range.head, to: range.revision };
  const touched = await changedEntries(sql, clusterId, span, kinds, MOST_ENTRIES, { touched: true });
  // A site made since has parts that it has by default: they differ from those that it did not have then.
  const made = new Set(touched.flatMap(({ kind, from, to }) => (kind === siteKind.kind && !to ? [from?.owner] : [])));
  const found = touched.filter(({ from, to }) => to || !made.has(from?.owner ?? null));
  const differing: RestoredSettings[] = [];
  for (const restorer of RESTORERS) {
    const entries = found.filter(({ kind }) => kind === restorer.kind);
    differing.push(...(await differingFrom(sql, clusterId, restorer, entries)));
  }
  return differing;
}

/** Throws ROLLBACK_TOO_LARGE for more settings than are put back at once. */
export function assertRestorable(settings: readonly RestoredSettings[]): void {
  if (settings.length > MAX_RESTORED) fail('ROLLBACK_TOO_LARGE', { limit: MAX_RESTORED });
}

/** Locks what differs and saves it, cluster before sites as every change does; answers what was saved. */
export async function restoreSettings(
  sql: Tx['sql'],
  clusterId: string,
  range: { revision: string; head: string },
  now: Date,
): Promise<RestoredSettings[]> {
  const planned = await settingsToRestore(sql, clusterId, range);
  assertRestorable(planned);
  await sql('cluster').where({ id: clusterId }).forNoKeyUpdate().first('id');
  await lockSites(sql, sitesOf(planned));
  // What was saved until the lock was had is what counts; what only differs since is left as it is.
  const locked = new Set(planned.map(nameOf));
  const differing = (await settingsToRestore(sql, clusterId, range)).filter((one) => locked.has(nameOf(one)));
  for (const { kind, parts } of differing) {
    for (const { id, settings } of parts) await restorerOf(kind).save(sql, clusterId, id, settings, now);
  }
  return differing;
}

async function differingFrom(
  sql: Sql,
  clusterId: string,
  { kind: name, locks, keeps = [], derived = [], whole = false }: SettingsRestorer,
  touched: readonly EntryVersions[],
): Promise<RestoredSettings[]> {
  if (touched.length === 0) return [];
  const kind = kindNamed(name);
  const thingOf = (id: string) => kind.partOf?.(id) ?? id;
  const things = [...new Set(touched.map(({ id }) => thingOf(id)))];
  const there = locks === 'site' ? await sitesOfCluster(sql, clusterId, things) : null;
  const entries = touched.filter(({ id }) => there?.has(thingOf(id)) ?? true);
  const ids = entries.map(({ id }) => id);
  const compiled = await kind.compile(sql, clusterId, ids);
  const differing = new Map<string, RestoredSettings>();
  for (const { id, from, to } of entries) {
    const saved = (compiled.get(id)?.settings ?? kind.defaults) as Settings | undefined;
    const then = (to ? to.settings : kind.defaults) as Settings | null | undefined;
    if (!saved || !then) continue;
    const settings = whole ? then : put(saved, then, [...keeps, ...derived, ...(kind.keptOnRollback ?? [])]);
    const fields = settingsDiff(shown(kind, saved), shown(kind, settings));
    if (fields.length === 0) continue;
    const thing = thingOf(id);
    const known = differing.get(thing) ?? {
      kind: name,
      id: thing,
      owner: (to ?? from)?.owner ?? null,
      fields: [],
      parts: [],
    };
    differing.set(thing, { ...known, fields: [...known.fields, ...fields], parts: [...known.parts, { id, settings }] });
  }
  return [...differing.values()];
}

/** Saved settings with the fields of then; what is newer than the revision's settings stays. */
export function put(saved: Settings, then: Settings, keeps: readonly string[]): Settings {
  const fields = Object.entries(then).filter(([field]) => !keeps.includes(field));
  return {
    ...saved,
    ...Object.fromEntries(
      fields.map(([field, value]) => {
        const now = saved[field];
        return [field, isRecord(now) && isRecord(value) ? { ...now, ...value } : value];
      }),
    ),
  };
}

export function shown(kind: EntryKind, settings: Settings): object {
  return kind.shown?.(settings) ?? settings;
}

function sitesOf(planned: readonly RestoredSettings[]): string[] {
  return [...new Set(planned.flatMap(({ kind, id }) => (restorerOf(kind).locks === 'site' ? [id] : [])))];
}

function nameOf({ kind, id }: RestoredSettings): string {
  return `${kind} ${id}`;
}
