// Levels as the console and people see them.
import { create } from '@bufbuild/protobuf';
import type { SiteLevelState } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type SiteSecurity, SiteSecuritySchema } from '../../../proto/gen/svc/node/v1/security_pb.js';

const MAX_SITES = 2000;
const MAX_PATHS = 64;

/** Sites above normal or with escalated paths; of too many, those with the highest levels. */
export function reportedSites(sites: readonly SiteLevelState[]): SiteSecurity[] {
  const found = sites.map(({ siteId, site, paths }) =>
    create(SiteSecuritySchema, {
      siteId,
      level: site?.level ?? 0,
      paths: paths.slice(0, MAX_PATHS).map(({ path, state }) => ({ path, level: state?.level ?? 0 })),
    }),
  );
  if (found.length <= MAX_SITES) return found;
  return found.sort((left, right) => right.level - left.level).slice(0, MAX_SITES);
}
