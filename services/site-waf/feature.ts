import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { wafRestorer } from './restore-site-waf.ts';

export const feature = { restores: [wafRestorer] } satisfies ServiceFeature;
