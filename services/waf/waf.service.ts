import type { ServiceSchema } from 'moleculer';
import { siteWaf } from '../../contract/resources/site-waf.ts';
import { wafEvents } from '../../contract/resources/waf-events.ts';
import { wafExclusions } from '../../contract/resources/waf-exclusions.ts';
import { wafGuidance } from '../../contract/resources/waf-guidance.ts';
import { wafPacks } from '../../contract/resources/waf-packs.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listExclusionHits, previewExclusions } from './exclusion-hits.ts';
import { getWafGuidance } from './guidance.ts';
import { listWafPacks } from './packs.ts';
import { getSiteWaf, updateSiteWaf } from './site-waf.ts';
import { listTopRules } from './top-rules.ts';
import { listWafEvents } from './waf-events.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'waf',
  mixins: [
    contractService([
      implement(siteWaf.get, (input) => getSiteWaf(runtime, input)),
      implement(siteWaf.update, (input, call) => updateSiteWaf(runtime, input, call)),
      implement(siteWaf.topRules, (input) => listTopRules(runtime, input)),
      implement(wafGuidance.get, (input) => getWafGuidance(runtime, input)),
      implement(wafEvents.list, (input) => listWafEvents(runtime, input)),
      implement(wafExclusions.hits, (input) => listExclusionHits(runtime, input)),
      implement(wafExclusions.preview, (input) => previewExclusions(runtime, input)),
      implement(wafPacks.list, (input) => listWafPacks(runtime, input)),
    ]),
  ],
});
