// Kind "site-content": what the edge says about the content of origins. Without an entry it says nothing.
import { create, toBinary } from '@bufbuild/protobuf';
import type { ContentSettings } from '../../contract/resources/site-origins.ts';
import { SiteContentSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_CONTENT_KIND = 'site-content';

/** Of the content settings those that this kind publishes. */
export type CharsetSettings = Pick<ContentSettings, 'charset'>;

/** What a site has that was saved before the settings came. */
export const CHARSET_BEFORE: CharsetSettings = { charset: { name: 'off', force: false, uppercase: false } };

const SAVED = { table: 'site', key: 'id', column: 'content_settings', defaults: CHARSET_BEFORE };

export const siteContentKind = siteSettingsKind<CharsetSettings>(SITE_CONTENT_KIND, SAVED, {
  compilerVersion: 1,
  compile: compileEach(SAVED, compileContent),
});

/** The entry of a site's settings; null where the edge leaves what origins say of their content. */
export function compileContent({ charset }: CharsetSettings): CompiledEntry | null {
  const { name, force, uppercase } = charset;
  if (name === 'off') return null;
  const sent = uppercase ? name.toUpperCase() : name;
  const message = create(SiteContentSchema, { charset: sent, forceCharset: force });
  return { body: toBinary(SiteContentSchema, message), features: ['site-content-v1'], refs: [], settings: { charset } };
}
