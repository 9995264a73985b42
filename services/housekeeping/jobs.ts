// The jobs of all services: each stands in the feature.ts of its own.

import type { ServiceFeature } from '../../mixins/service-feature.ts';
import type { LeaderJob } from '../../runtime/leader.ts';
import { FEATURES } from '../gen/features.ts';

export const JOBS: readonly LeaderJob[] = FEATURES.flatMap((feature: ServiceFeature) => feature.jobs ?? []);
