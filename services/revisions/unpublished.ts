// Saved settings that no node runs, of a site or of a cluster: a rollback, an aborted canary or an automatic undo leaves
// them behind. They can be published again, or given up for what nodes run.
import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import { type ObjectChange, SHOWN_FIELDS } from '../../contract/resources/revisions.ts';
import type { unpublishedOfSite } from '../../contract/resources/unpublished.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { latestRetreat } from '../../models/config/config-revision.ts';
import { kindNamed } from '../../models/config/entry-kinds.ts';
import { siteOwner } from '../../models/config/entry-owner.ts';
import { runSettings } from '../../models/config/live-settings.ts';
import { ownedSubjects } from '../../models/config/revision-subject.ts';
import { type FieldChange, settingsDiff } from '../../models/config/settings-diff.ts';
import { clusterOfSite, lockSites } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { publishRestored, type RestoredPart, savePart } from './publish-restored.ts';
import { put, type Settings, shown } from './restore-settings.ts';
import { RESTORERS } from './restorers.ts';

type Sql = Runtime['pools']['api'];
type Unpublished = Output<typeof unpublishedOfSite.unpublished>;

/** Whose settings: of a site, or those of the cluster itself (empty `siteId`). */
export interface Place {
  clusterId: string;
  siteId: string;
}

interface Found {
  kind: string;
  id: string;
  /** What nodes run; null: nothing. */
  run: Settings | null;
  refs: string[];
  saved: Settings;
  /** From what nodes run to what is saved. */
  fields: FieldChange[];
}

/** Throws SITE_NOT_FOUND. */
export async function placeOfSite({ pools }: Runtime, { id: siteId }: { id: string }): Promise<Place> {
  return { siteId, clusterId: (await clusterOfSite(pools.api, siteId)) ?? fail('SITE_NOT_FOUND') };
}

/** Throws CLUSTER_NOT_FOUND. */
export async function placeOfCluster({ pools }: Runtime, { id: clusterId }: { id: string }): Promise<Place> {
  if (!(await Cluster.query(pools.api).findById(clusterId).select('id'))) fail('CLUSTER_NOT_FOUND');
  return { siteId: '', clusterId };
}

export async function readUnpublished({ pools }: Runtime, place: Place): Promise<Unpublished> {
  const sql = pools.api;
  const found = await findUnpublished(sql, place);
  const [subject] = found.length > 0 && place.siteId ? await ownedSubjects(sql, [siteOwner(place.siteId)]) : [null];
  const cause = found.length > 0 ? await latestRetreat(sql, place.clusterId) : undefined;
  return {
    clusterId: place.clusterId,
    changes: [...Map.groupBy(found, ({ kind }) => kind).values()].map((parts) => present(parts, place, subject!)),
    discardable: isDiscardable(found),
    cause: cause
      ? { revision: cause.number, reasonCode: cause.reason, createdAt: cause.createdAt.toISOString() }
      : null,
  };
}

/** Publishes them; answers the revision, null where nodes run them already. */
export async function publishUnpublished(
  runtime: Runtime,
  place: Place,
  call: Call,
): Promise<{ revision: string | null }> {
  return change(runtime, place, call, async (tx, cluster, found) => {
    const parts = found.map(({ kind, id, saved, fields }) =>
      partOf(place, { kind, id, settings: saved, fields, brought: [] }),
    );
    const note = { reason: 'settings_republished', action: actionOf(place, 'publish'), params: {} };
    return { revision: await publishRestored(tx, cluster, parts, note) };
  });
}

/** Saves what nodes run. Throws ROLLBACK_RESOURCE_UNAVAILABLE. */
export async function discardUnpublished(
  runtime: Runtime,
  place: Place,
  call: Call,
): Promise<{ revision: string | null; restoredFields: number }> {
  return change(runtime, place, call, async (tx, cluster, found) => {
    // A site that nodes have never run has nothing to return to.
    const known = isDiscardable(found) ? found : [];
    const parts = known.flatMap(({ kind, id, run, refs, fields }) =>
      run === null ? [] : [partOf(place, { kind, id, settings: run, fields, brought: refs })],
    );
    for (const part of parts) await savePart(tx, place.clusterId, part);
    const note = { reason: 'unpublished_discarded', action: actionOf(place, 'discard'), params: {} };
    const revision = await publishRestored(tx, cluster, parts, note);
    return { revision, restoredFields: parts.reduce((sum, { fields }) => sum + fields.length, 0) };
  });
}

function isDiscardable(found: readonly Found[]): boolean {
  return found.every(({ run }) => run !== null);
}

function actionOf({ siteId }: Place, verb: string): string {
  return `${siteId ? 'site' : 'cluster'}.unpublished_${verb}`;
}

function partOf({ siteId }: Place, part: Omit<RestoredPart, 'thing'>): RestoredPart {
  return { ...part, thing: siteId };
}

type Change<T> = (tx: Tx, cluster: { id: string; name: string }, found: readonly Found[]) => Promise<T>;

async function change<T>(runtime: Runtime, place: Place, call: Call, work: Change<T>): Promise<T> {
  const { clusterId, siteId } = place;
  return write(runtime, call, { clusterId }, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
    if (siteId) {
      await lockSites(tx.sql, [siteId]);
      if ((await clusterOfSite(tx.sql, siteId)) === undefined) fail('SITE_NOT_FOUND');
    }
    return work(tx, cluster, await findUnpublished(tx.sql, place));
  });
}

/** As many reads as there are kinds, however many sites the cluster has. */
async function findUnpublished(sql: Sql, { clusterId, siteId }: Place): Promise<Found[]> {
  const restorers = RESTORERS.filter(({ locks }) => locks === (siteId ? 'site' : 'cluster'));
  const names = restorers.flatMap(({ kind, ids = (id: string) => [id] }) => ids(siteId).map((id) => ({ kind, id })));
  const running = await runSettings(sql, clusterId, names);
  const found: Found[] = [];
  for (const { kind: name, derived = [], whole = false } of restorers) {
    const kind = kindNamed(name);
    const ids = names.flatMap((entry) => (entry.kind === name ? [entry.id] : []));
    const compiled = await kind.compile(sql, clusterId, ids);
    for (const id of ids) {
      const saved = (compiled.get(id)?.settings ?? kind.defaults) as Settings | undefined;
      if (!saved) continue;
      const entry = running.get(`${name} ${id}`);
      // Of entries that are older than what is kept of their settings nothing can be told.
      if (entry?.settings === null) continue;
      const then = (entry?.settings ?? kind.defaults ?? null) as Settings | null;
      const run = then && (whole ? then : put(saved, then, derived));
      const fields = settingsDiff(run ? shown(kind, run) : {}, shown(kind, saved));
      if (fields.length > 0) found.push({ kind: name, id, run, refs: entry?.refs ?? [], saved, fields });
    }
  }
  return found;
}

function present(parts: readonly Found[], { siteId }: Place, subject: ObjectChange['subject']): ObjectChange {
  const [{ kind, run }] = parts as [Found];
  return {
    kind,
    id: siteId,
    subject,
    change: run === null ? 'added' : 'changed',
    settingsKnown: true,
    fields: parts.flatMap(({ fields }) => fields).slice(0, SHOWN_FIELDS),
  };
}
