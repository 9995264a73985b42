import type { ServiceSchema } from 'moleculer';
import { analytics } from '../../contract/resources/analytics.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readBreakdown } from './breakdown.ts';
import { readDimensions } from './dimensions.ts';
import { readSparklines } from './sparklines.ts';
import { readTop } from './top.ts';
import { readTopRequests } from './top-requests.ts';
import { readTopRules } from './top-rules.ts';
import { readTraffic } from './traffic.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'analytics',
  mixins: [
    contractService([
      implement(analytics.traffic, (input) => readTraffic(runtime, input)),
      implement(analytics.topSites, (input) => readTop(runtime, 'site', input)),
      implement(analytics.topNodes, (input) => readTop(runtime, 'node', input)),
      implement(analytics.topRequests, (input) => readTopRequests(runtime, input)),
      implement(analytics.topRules, (input) => readTopRules(runtime, input)),
      implement(analytics.dimensions, (input) => readDimensions(runtime, input)),
      implement(analytics.sparklines, (input) => readSparklines(runtime, input)),
      implement(analytics.breakdown, (input) => readBreakdown(runtime, input)),
    ]),
  ],
});
