import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { bulkRedirectsRestorer } from './restore-bulk-redirects.ts';

export const feature = { restores: [bulkRedirectsRestorer] } satisfies ServiceFeature;
