// Kind "site-purge-method": a site that takes PURGE requests. Without an entry its origins get them.
import { create, toBinary } from '@bufbuild/protobuf';
import { SitePurgeMethodSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { siteSettingsKind } from '../config/site-settings-kind.ts';
import type { PurgeMethod } from './purge-method.ts';

export const SITE_PURGE_METHOD_KIND = 'site-purge-method';

export const sitePurgeMethodKind = siteSettingsKind(
  SITE_PURGE_METHOD_KIND,
  { table: 'site_purge_method', defaults: { enabled: false } },
  {
    compilerVersion: 1,
    // A key that was replaced may be known to others: all nodes follow at once, and no rollback brings it back.
    bypass: true,
    onRollback: 'current',
    async compile(sql, clusterId, ids) {
      const { rows } = await sql.raw<{ rows: (PurgeMethod & { id: string })[] }>(
        `select site_id as id, enabled, key_digest as "keyDigest" from site_purge_method
          where cluster_id = ? and site_id = any(?)`,
        [clusterId, ids as never],
      );
      return new Map(
        rows.flatMap(({ id, ...method }): [string, CompiledEntry][] => {
          const entry = compilePurgeMethod(method);
          return entry ? [[id, entry]] : [];
        }),
      );
    },
  },
);

/** The entry of a site; null where origins get PURGE requests. */
export function compilePurgeMethod({ enabled, keyDigest }: PurgeMethod): CompiledEntry | null {
  if (!enabled || keyDigest === null) return null;
  return {
    body: toBinary(SitePurgeMethodSchema, create(SitePurgeMethodSchema, { keyDigest })),
    features: ['purge-method-v1', 'site-content-v1'],
    refs: [],
  };
}
