// Kind "site-requests": how requests of a site are read and sent to its origins. Without an entry it has what sites had before
// these settings.
import { create, toBinary } from '@bufbuild/protobuf';
import type { ContentSettings } from '../../contract/resources/site-origins.ts';
import { SiteRequestsSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_REQUESTS_KIND = 'site-requests';

/** Of the content settings those that this kind publishes; other kinds of the site publish the others. */
export type RequestSettings = Pick<ContentSettings, 'pathNormalization' | 'requestBuffering'>;

/** What a site has that was saved before the settings came. */
export const REQUESTS_BEFORE: RequestSettings = { pathNormalization: false, requestBuffering: true };

const SAVED = { table: 'site', key: 'id', column: 'content_settings', defaults: REQUESTS_BEFORE };

export const siteRequestsKind = siteSettingsKind<RequestSettings>(SITE_REQUESTS_KIND, SAVED, {
  compilerVersion: 1,
  compile: compileEach(SAVED, compileRequests),
});

/**
 * The entry of a site's settings; null for those that do what a node does without one. Path normalization asks for no
 * capability: every new site has it, and a node that lacks one would not serve them. A node of before serves them as it
 * always did, and reports the entry as failed.
 */
export function compileRequests({ pathNormalization, requestBuffering }: RequestSettings): CompiledEntry | null {
  if (!pathNormalization && requestBuffering) return null;
  const message = create(SiteRequestsSchema, { pathNormalization, streamBodies: !requestBuffering });
  const features = requestBuffering ? [] : ['request-buffering-v1'];
  return {
    body: toBinary(SiteRequestsSchema, message),
    features,
    refs: [],
    settings: { pathNormalization, requestBuffering },
  };
}
