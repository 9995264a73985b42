// Kind "site-compression": how answers of a site are compressed. Without an entry it has the defaults.
import { create, toBinary } from '@bufbuild/protobuf';
import { type CompressionSettings, DEFAULT_COMPRESSION } from '../../contract/resources/site-https.ts';
import { CodingSettingsSchema, SiteCompressionSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_COMPRESSION_KIND = 'site-compression';

const SAVED = { table: 'site_https', column: 'compression', defaults: DEFAULT_COMPRESSION };

export const siteCompressionKind = siteSettingsKind<CompressionSettings>(SITE_COMPRESSION_KIND, SAVED, {
  compilerVersion: 1,
  compile: compileEach(SAVED, compileCompression),
});

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
