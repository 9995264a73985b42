import { MAX_ATTENTION } from '../../contract/resources/overview.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { endingCertificates } from '../../models/certificates/certificate.ts';
import { acmeJobs } from './acme/jobs.ts';

export const feature = {
  jobs: acmeJobs,
  attention: {
    kinds: { certificates_ending: { alert: 'certificate', most: MAX_ATTENTION } },
    async find(sql, clusterId) {
      const found = await endingCertificates(sql, clusterId);
      return found.map(({ at, named, ...item }) => ({
        kind: 'certificates_ending',
        ...item,
        at: at.toISOString(),
        named: named.map((site) => ({ type: 'site', ...site, reason: null })),
      }));
    },
  },
} satisfies ServiceFeature;
