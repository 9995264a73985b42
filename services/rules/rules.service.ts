import type { ServiceSchema } from 'moleculer';
import { siteCacheExplanation } from '../../contract/resources/cache-explain.ts';
import { ruleTrial } from '../../contract/resources/rule-trial.ts';
import { platformRules, rules, siteRules } from '../../contract/resources/rules.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { explainCache } from './explain-cache.ts';
import { getPlatformRules, setPlatformRules } from './platform-rules.ts';
import { getSiteRules, setSiteRules } from './site-rules.ts';
import { tryRules } from './try-rules.ts';
import { validateExpression } from './validate-expression.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'rules',
  mixins: [
    contractService([
      implement(siteRules.get, (input, call) => getSiteRules(runtime, input, call)),
      implement(siteRules.set, (input, call) => setSiteRules(runtime, input, call)),
      implement(platformRules.get, (_, call) => getPlatformRules(runtime, call)),
      implement(platformRules.set, (input, call) => setPlatformRules(runtime, input, call)),
      implement(siteCacheExplanation.explain, (input) => explainCache(runtime, input)),
      implement(ruleTrial.try, (input) => tryRules(runtime, input)),
      implement(rules.validate, (input) => validateExpression(runtime, input)),
    ]),
  ],
});
