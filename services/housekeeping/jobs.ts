// The jobs of all services: each stands in the feature.ts of its own.
import type { LeaderJob } from '../../runtime/leader.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { FEATURES } from '../gen/features.ts';

export const JOBS: readonly LeaderJob[] = FEATURES.flatMap((feature: ServiceFeature) => feature.jobs ?? []);
