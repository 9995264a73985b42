import type { ServiceSchema } from 'moleculer';
import { ruleHits } from '../../contract/resources/rule-hits.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listLoggedRules, platformRuleHits, siteRuleHits } from './rule-hits.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'rule-hits',
  mixins: [
    contractService([
      implement(ruleHits.logged, (input) => listLoggedRules(runtime, input)),
      implement(ruleHits.site, (input) => siteRuleHits(runtime, input)),
      implement(ruleHits.platform, (input) => platformRuleHits(runtime, input)),
    ]),
  ],
});
