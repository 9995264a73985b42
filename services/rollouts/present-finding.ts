import type { Finding } from '../../contract/resources/rollout.ts';

/** A finding as it was stored, which says only what it knows. */
export function presentFinding(finding: Partial<Finding> | null): Finding | null {
  if (finding?.reason === undefined) return null;
  const { reason, siteId = null, siteName = null, nodeIds = [], figure = null } = finding;
  const { before = null, baseline = null, now = null, requests = null, message = null } = finding;
  return { reason, siteId, siteName, nodeIds, figure, before, baseline, now, requests, message };
}
