import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { compressionRestorer, httpsRestorer } from './restore-site-https.ts';

export const feature = { restores: [httpsRestorer, compressionRestorer] } satisfies ServiceFeature;
