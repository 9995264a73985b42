import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { NAMED_SITES, type ObjectChange, type revisions, SHOWN_FIELDS } from '../../contract/resources/revisions.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { revisionPlace } from '../../models/config/config-revision.ts';
import { siteOfOwner } from '../../models/config/entry-owner.ts';
import { ownedSubjects } from '../../models/config/revision-subject.ts';
import { planRollback, type RollbackPlan } from '../../models/config/rollback.ts';
import { lockHead, writeRevision } from '../../models/config/write-revision.ts';
import { hint, leaveHints } from '../../models/db/live-hint.ts';
import { noteEnd } from '../../models/rollouts/cluster-canary.ts';
import { readRollout } from '../../models/rollouts/rollout.ts';
import { siteLabels } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { assertRestorable, type RestoredSettings, restoreSettings, settingsToRestore } from './restore-settings.ts';

type Sql = Runtime['pools']['api'];

/** Refuses as the rollback would. */
export async function previewRollback(
  { pools }: Runtime,
  { id, revision, restoreSettings: restoring = false }: Input<typeof revisions.rollbackPreview>,
): Promise<Output<typeof revisions.rollbackPreview>> {
  const sql = pools.api;
  const head = await headOver(sql, id, revision);
  const settings = await settingsToRestore(sql, id, { revision, head });
  if (restoring) assertRestorable(settings);
  const plan = await planRollback(sql, id, { revision, head }, { restoring: ownersOf(restoring ? settings : []) });
  const { differences, sites, keptDisabled } = plan;
  // A rollback ends a running canary: its nodes get something else even where the others do not.
  const canary = ((await readRollout(sql, id))?.candidateRevision ?? null) !== null;
  const named = (ids: readonly string[]) => siteLabels(sql, ids.slice(0, NAMED_SITES));
  return {
    revision,
    currentRevision: head === '0' ? null : head,
    unchanged: differences.length === 0 && !canary,
    sites: {
      added: await named(sites.added),
      changed: await named(sites.changed),
      removed: await named(sites.removed),
    },
    siteCounts: { added: sites.added.length, changed: sites.changed.length, removed: sites.removed.length },
    keptDisabled: await named(keptDisabled),
    entryCount: differences.length,
    settings: { total: settings.length, items: await presentSettings(sql, settings.slice(0, NAMED_SITES)) },
  };
}

/**
 * Publishes what the revision had, as a new revision, and saves its settings where that is asked for. Throws the errors of
 * a preview; SERVICE_UNAVAILABLE when another change of the cluster came between.
 */
export async function rollBack(
  runtime: Runtime,
  { id, revision, note, restoreSettings: restoring = false }: Input<typeof revisions.rollback>,
  call: Call,
): Promise<Output<typeof revisions.rollback>> {
  return write(runtime, call, { clusterId: id }, async (tx) => {
    const cluster = (await Cluster.query(tx.sql).findById(id).select('name')) ?? fail('CLUSTER_NOT_FOUND');
    const head = await headOver(tx.sql, id, revision);
    const restored = restoring ? await restoreSettings(tx.sql, id, { revision, head }, tx.now) : [];
    await lockHead(tx, id, []);
    const now = await headOver(tx.sql, id, revision);
    // What came between may have changed settings that were not locked.
    if (restoring && now !== head) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    const plan = await planRollback(tx.sql, id, { revision, head: now }, { restoring: ownersOf(restored) });
    const target = { type: 'cluster', id, name: cluster.name };
    const number = await publishPlan(tx, plan, restored, { target, revision, ...(note === undefined ? {} : { note }) });
    return { revision: number, restoredSettings: restored.length };
  });
}

interface Said {
  target: { type: string; id: string; name: string };
  revision: string;
  note?: string;
}

async function publishPlan(
  tx: Tx,
  { differences, sites }: RollbackPlan,
  restored: readonly RestoredSettings[],
  { target, ...params }: Said,
): Promise<string | null> {
  const { added, changed, removed } = sites;
  const metadata = {
    ...params,
    added: added.length,
    changed: changed.length,
    removed: removed.length,
    settings: restored.map(({ kind, id, fields }) => ({ kind, id, fields: fields.map(({ path }) => path) })),
  };
  const audit = { action: 'cluster.rollback', target, metadata };
  await leaveHints(
    tx.sql,
    restored.flatMap(({ owner }) => {
      const site = siteOfOwner(owner);
      return site === null ? [] : [hint('sites', site)];
    }),
  );
  const head = await lockHead(tx, target.id, differences);
  if (differences.length === 0 && !head.canary) {
    if (restored.length > 0) await recordAudit(tx, audit.action, target, metadata);
    return null;
  }
  const note = { clusterId: target.id, reason: 'rollback', params, source: 'rollback', audit } as const;
  // Everybody gets it, and what a canary tries is over with it.
  const number = await writeRevision(tx, note, head, differences, { ends: head.canary !== null });
  if (head.canary) await noteEnd(tx, target.id, { outcome: 'manual_rollback', revision: number });
  return number;
}

/** The cluster's latest revision, beside which the asked one is kept. Throws CLUSTER_NOT_FOUND and REVISION_NOT_FOUND. */
async function headOver(sql: Sql, id: string, revision: string): Promise<string> {
  const { head, kept } = (await revisionPlace(sql, id, revision)) ?? fail('CLUSTER_NOT_FOUND');
  if (!kept) fail('REVISION_NOT_FOUND', { revision });
  return head;
}

function ownersOf(settings: readonly RestoredSettings[]): Set<string> {
  return new Set(settings.flatMap(({ owner }) => owner ?? []));
}

async function presentSettings(sql: Sql, settings: readonly RestoredSettings[]): Promise<ObjectChange[]> {
  const subjects = await ownedSubjects(
    sql,
    settings.map(({ owner }) => owner),
  );
  return settings.map(({ kind, id, fields }, index) => ({
    kind,
    id: subjects[index]?.id ?? id,
    subject: subjects[index]!,
    change: 'changed',
    settingsKnown: true,
    fields: fields.slice(0, SHOWN_FIELDS),
  }));
}
