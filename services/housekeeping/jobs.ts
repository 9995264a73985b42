// The jobs of all services, each from the feature.ts of its own, and the one that needs all of them.

import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { SECOND_MS } from '../../mixins/sweep.ts';
import type { LeaderJob } from '../../runtime/leader.ts';
import { FEATURES } from '../gen/features.ts';
import { reviewAlerts } from './review-alerts.ts';

const SOURCES = {
  attention: FEATURES.flatMap(({ attention }: ServiceFeature) => attention ?? []),
  alerts: FEATURES.flatMap(({ alerts }: ServiceFeature) => alerts ?? []),
};

export const JOBS: readonly LeaderJob[] = [
  ...FEATURES.flatMap((feature: ServiceFeature) => feature.jobs ?? []),
  { name: 'review-alerts', everyMs: 15 * SECOND_MS, run: (runtime) => reviewAlerts(runtime, SOURCES, new Date()) },
];
