// Kind "site-compression": how answers of a site are compressed. Without an entry it has the defaults.
import { create, toBinary } from '@bufbuild/protobuf';
import { type CompressionSettings, DEFAULT_COMPRESSION } from '../../contract/resources/site-https.ts';
import { CodingSettingsSchema, SiteCompressionSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';

export const SITE_COMPRESSION_KIND = 'site-compression';

const LIST_BATCH = 1000;

export const siteCompressionKind: EntryKind = {
  kind: SITE_COMPRESSION_KIND,
  compilerVersion: 1,
  bypass: false,
  onRollback: 'restore',
  defaults: DEFAULT_COMPRESSION,
  scope: 'cluster',
  ownerOf: siteOwner,
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{ rows: { id: string; compression: Partial<CompressionSettings> }[] }>(
      'select site_id as id, compression from site_https where cluster_id = ? and site_id = any(?)',
      [clusterId, ids as never],
    );
    const compiled = new Map<string, CompiledEntry>();
    for (const { id, compression } of rows) {
      const entry = compileCompression({ ...DEFAULT_COMPRESSION, ...compression });
      if (entry) compiled.set(id, entry);
    }
    return compiled;
  },
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const { rows } = await sql.raw<{ rows: { id: string }[] }>(
        'select site_id as id from site_https where cluster_id = ? and site_id > ? order by site_id limit ?',
        [clusterId, after, LIST_BATCH],
      );
      if (rows.length === 0) return;
      yield rows.map(({ id }) => id);
      after = rows.at(-1)!.id;
    }
  },
};

/** The entry of a site's settings; null for those that do what the defaults do. */
export function compileCompression(settings: CompressionSettings): CompiledEntry | null {
  const body = bytesOf(settings);
  if (Buffer.compare(body, DEFAULT_BYTES) === 0) return null;
  const { brotli, zstd } = settings;
  const features = [...(brotli ? ['brotli-v1'] : []), 'compression-v1', ...(zstd ? ['zstd-v1'] : [])];
  return { body, features, refs: [], settings };
}

function bytesOf({ compressMaxLength, ...settings }: CompressionSettings): Uint8Array {
  const coding = (name: 'gzip' | 'brotli' | 'zstd') =>
    create(CodingSettingsSchema, {
      enabled: settings[name],
      level: settings[`${name}Level`],
      minLength: settings[`${name}MinLength`],
      types: settings[`${name}Types`],
    });
  const message = create(SiteCompressionSchema, {
    gzip: coding('gzip'),
    brotli: coding('brotli'),
    zstd: coding('zstd'),
    maxLength: BigInt(compressMaxLength),
  });
  return toBinary(SiteCompressionSchema, message);
}

const DEFAULT_BYTES = bytesOf(DEFAULT_COMPRESSION);
