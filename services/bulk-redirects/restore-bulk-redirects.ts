// Saves a chunk of a site's redirects as an earlier revision had it.

import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import {
  bulkRedirectsUpdatedAt,
  EVERY_CHUNK,
  placed,
  replaceBulkRedirects,
  touchBulkRedirects,
} from '../../models/sites/bulk-redirect.ts';
import {
  type BulkRedirectChunk,
  bulkRedirectsId,
  bulkRedirectsKind,
  chunkOfId,
} from '../../models/sites/bulk-redirects.entry.ts';

export const bulkRedirectsRestorer: SettingsRestorer = {
  kind: bulkRedirectsKind.kind,
  locks: 'site',
  whole: true,
  ids: (id) => EVERY_CHUNK.map((chunk) => bulkRedirectsId(id, chunk)),
  async save(sql, _clusterId, id, settings, now) {
    const [siteId, chunk] = chunkOfId(id);
    await replaceBulkRedirects(sql, siteId, placed((settings as BulkRedirectChunk).redirects), chunk);
    await touchBulkRedirects(sql, siteId, nextUpdatedAt((await bulkRedirectsUpdatedAt(sql, siteId))!, now));
  },
};
