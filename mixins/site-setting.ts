// Reads and replaces settings of a site of which each has a table and a kind of its own.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../contract/errors.ts';
import type { CompiledEntry } from '../models/config/entry-kind.ts';
import { publish } from '../models/config/publish.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../models/db/updated-at.ts';
import { clusterOfSite, lockSite } from '../models/sites/site.ts';
import {
  readSiteSetting,
  type SettingTable,
  type SiteSetting,
  writeSiteSetting,
} from '../models/sites/site-setting.ts';
import type { Call } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { write } from '../runtime/write.ts';

export interface SettingOfSites<S extends object> {
  table: SettingTable;
  defaults: S;
  kind: string;
  compile(settings: S): CompiledEntry | null;
  reason: string;
  audit: string;
  /** What the audit tells of a change, without templates. */
  told(before: S, after: S): Record<string, unknown>;
}

export type SettingState<S> = { siteId: string; updatedAt: string | null } & S;

/** Throws SITE_NOT_FOUND. */
export async function getSiteSetting<S extends object>(
  { pools }: Runtime,
  { table, defaults }: SettingOfSites<S>,
  id: string,
): Promise<SettingState<S>> {
  return present(id, (await readSiteSetting(pools.api, table, id, defaults)) ?? fail('SITE_NOT_FOUND'));
}

/** Replaces the settings; equal ones are not saved again. Publishes what nodes run differently. Throws SITE_NOT_FOUND, UPDATED_AT_MISMATCH. */
export async function replaceSiteSetting<S extends object>(
  runtime: Runtime,
  call: Call,
  { table, defaults, kind, compile, reason, audit, told }: SettingOfSites<S>,
  { id, settings, expectedUpdatedAt }: { id: string; settings: S; expectedUpdatedAt: string | null | undefined },
): Promise<SettingState<S> & { revision: string | null }> {
  const clusterId = (await clusterOfSite(runtime.pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const { name } = (await lockSite(tx.sql, id)) ?? fail('SITE_NOT_FOUND');
    const before = (await readSiteSetting(tx.sql, table, id, defaults))!;
    assertUpdatedAt(expectedUpdatedAt, before.updatedAt);
    const again = isDeepStrictEqual(before.settings, settings);
    const saved = { settings, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    if (!again) await writeSiteSetting(tx.sql, table, { id, clusterId }, saved);
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind, id, compiled: compile(settings) }],
      reason,
      params: { site: name, siteId: id, changed: changedFields(before.settings, settings) },
      audit: {
        action: audit,
        target: { type: 'site', id, name },
        metadata: told(before.settings, settings),
      },
      again,
    });
    return { ...present(id, again ? before : saved), revision };
  });
}

function changedFields<S extends object>(before: S, after: S): string[] {
  return (Object.keys(after) as (keyof S & string)[]).filter(
    (field) => !isDeepStrictEqual(before[field], after[field]),
  );
}

function present<S>(siteId: string, { settings, updatedAt }: SiteSetting<S>): SettingState<S> {
  return { siteId, ...settings, updatedAt: updatedAt?.toISOString() ?? null };
}
