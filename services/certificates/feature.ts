import { MAX_ATTENTION } from '../../contract/resources/overview.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { endingCertificates } from '../../models/certificates/certificate.ts';
import { failedCertificates, sitesLosingCertificates } from '../../models/certificates/expiring-certificate.ts';
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
  alerts: {
    kinds: ['certificate_expiring', 'certificate_failed'],
    async find(sql, { certificateHours }) {
      const [losing, failed] = await Promise.all([
        sitesLosingCertificates(sql, certificateHours, MAX_SUBJECTS),
        failedCertificates(sql, MAX_SUBJECTS),
      ]);
      return [
        ...losing.map(({ siteId, notAfter }) => ({
          kind: 'certificate_expiring',
          subject: 'site' as const,
          id: siteId,
          detail: { notAfter: `${notAfter.toISOString().slice(0, 16).replace('T', ' ')} UTC` },
        })),
        ...failed.map(({ id, error }) => ({
          kind: 'certificate_failed',
          subject: 'certificate' as const,
          id,
          detail: { error },
        })),
      ];
    },
  },
} satisfies ServiceFeature;
