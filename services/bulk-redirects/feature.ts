import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { bulkRedirectsRestorer } from './restore-bulk-redirects.ts';

export const feature = { restores: [bulkRedirectsRestorer] } satisfies ServiceFeature;
