// Saves settings as they were, and publishes them as a save does.
import { kindNamed } from '../../models/config/entry-kinds.ts';
import { publish } from '../../models/config/publish.ts';
import { refuseUnprovided } from '../../models/config/rollback.ts';
import type { FieldChange } from '../../models/config/settings-diff.ts';
import { distinct, type EntryName } from '../../models/config/write-revision.ts';
import { siteLabels } from '../../models/sites/site.ts';
import type { Tx } from '../../runtime/write.ts';
import type { Settings } from './restore-settings.ts';
import { restorerOf } from './restorers.ts';

/** Settings of one entry that are saved again. */
export interface RestoredPart {
  kind: string;
  /** Of the entry. */
  id: string;
  /** Of the site that it belongs to; empty: the cluster. */
  thing: string;
  settings: Settings;
  /** Fields that change, from what is saved to what it becomes. */
  fields: FieldChange[];
  /** References that the restored settings have and the saved ones lack. */
  brought: string[];
}

const GROUP = 'group:';
/** Fields named in the audit entry and in the revision. */
const NAMED_FIELDS = 20;

/** Saves a part whose site or cluster is locked. Throws ROLLBACK_RESOURCE_UNAVAILABLE. */
export async function savePart(
  tx: Tx,
  clusterId: string,
  { kind, id, settings, brought }: RestoredPart,
): Promise<void> {
  const owner = kindNamed(kind).ownerOf(id);
  const owners = { restoring: new Set(owner === null ? [] : [owner]), staying: new Set<string>() };
  // Another site may have a domain by now; whatever else is missing shows once everything is saved.
  await refuseUnprovided(
    tx.sql,
    clusterId,
    brought.map((ref) => ({ ref, owner })),
    owners,
    ['domain'],
  );
  await restorerOf(kind).save(tx.sql, clusterId, id, settings, tx.now);
}

/**
 * Publishes saved parts with what a save of them publishes beside; answers the revision, null when nodes get nothing else.
 * Without parts nothing happens. Throws ROLLBACK_RESOURCE_UNAVAILABLE for what the settings refer to and nobody provides.
 */
export async function publishRestored(
  tx: Tx,
  cluster: { id: string; name: string },
  parts: readonly RestoredPart[],
  { reason, action, params }: { reason: string; action: string; params: Record<string, unknown> },
): Promise<string | null> {
  if (parts.length === 0) return null;
  const names = await namesToPublish(tx, parts);
  await refuseMissing(tx, cluster.id, names, parts);
  const things = [...new Set(parts.map(({ thing }) => thing))];
  const [only] = things.length === 1 && things[0] !== '' ? await siteLabels(tx.sql, things) : [];
  const target = only ? { type: 'site', ...only } : { type: 'cluster', id: cluster.id, name: cluster.name };
  const changed = [...new Set(parts.flatMap(({ fields }) => fields.map(({ path }) => path)))].slice(0, NAMED_FIELDS);
  return publish(tx, {
    clusterId: cluster.id,
    entries: names,
    reason,
    params: { ...params, ...(only ? { site: only.name, siteId: only.id } : {}), changed },
    audit: { action, target, metadata: { ...params, changed } },
  });
}

async function namesToPublish(tx: Tx, parts: readonly RestoredPart[]): Promise<EntryName[]> {
  const names: EntryName[] = parts.map(({ kind, id }) => ({ kind, id }));
  for (const { kind, thing, fields } of parts) {
    const paths = fields.map(({ path }) => path);
    names.push(...((await restorerOf(kind).beside?.(tx.sql, thing, paths)) ?? []));
  }
  return distinct(names);
}

/** What the restored settings refer to, and the groups of origins that rules choose. */
async function refuseMissing(
  tx: Tx,
  clusterId: string,
  names: readonly EntryName[],
  parts: readonly RestoredPart[],
): Promise<void> {
  const brought = new Set(parts.flatMap((part) => part.brought.map((ref) => `${part.kind} ${part.id} ${ref}`)));
  for (const [name, group] of Map.groupBy(names, ({ kind }) => kind)) {
    const kind = kindNamed(name);
    const compiled = await kind.compile(
      tx.sql,
      clusterId,
      group.map(({ id }) => id),
    );
    const references = [...compiled].flatMap(([id, { refs }]) =>
      refs
        .filter((ref) => ref.startsWith(GROUP) || brought.has(`${name} ${id} ${ref}`))
        .map((ref) => ({ ref, owner: kind.ownerOf(id) })),
    );
    const staying = new Set(references.flatMap(({ owner }) => owner ?? []));
    await refuseUnprovided(tx.sql, clusterId, references, { restoring: new Set(), staying });
  }
}
