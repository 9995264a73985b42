import type { Finding } from '../../contract/resources/rollout.ts';

/** A finding of which only what is given is known. */
export function finding(given: Pick<Finding, 'reason'> & Partial<Finding>): Finding {
  return {
    siteId: null,
    siteName: null,
    nodeIds: [],
    figure: null,
    before: null,
    baseline: null,
    now: null,
    requests: null,
    message: null,
    ...given,
  };
}
