import type { ServiceSchema } from 'moleculer';
import { originAllowList } from '../../contract/resources/origin-allow-list.ts';
import { originHealth } from '../../contract/resources/origin-health.ts';
import { originTest } from '../../contract/resources/origin-test.ts';
import { siteStanding } from '../../contract/resources/site-standing.ts';
import { sites } from '../../contract/resources/sites.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createSite } from './create-site.ts';
import { deleteSite } from './delete-site.ts';
import { launchCheck } from './launch-check.ts';
import { getSite, listSites } from './list-sites.ts';
import { getOriginAllowList, setOriginAllowList } from './origin-allow-list.ts';
import { originHealthOf } from './origin-health.ts';
import { OriginTests } from './origin-tests.ts';
import { setSiteEnabled } from './set-site-enabled.ts';
import { siteFeatures } from './site-features.ts';
import { standingOf } from './site-standing.ts';
import { updateSite } from './update-site.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => {
  const originTests = new OriginTests(runtime);
  return {
    name: 'sites',
    mixins: [
      contractService([
        implement(sites.list, (input) => listSites(runtime, input)),
        implement(sites.get, (input) => getSite(runtime, input)),
        implement(sites.create, (input, call) => createSite(runtime, input, call)),
        implement(sites.update, (input, call) => updateSite(runtime, input, call)),
        implement(sites.delete, (input, call) => deleteSite(runtime, input, call)),
        implement(sites.setEnabled, (input, call) => setSiteEnabled(runtime, input, call)),
        implement(sites.features, (input) => siteFeatures(runtime, input)),
        implement(siteStanding.standing, (input) => standingOf(runtime, input)),
        implement(originHealth.originHealth, (input) => originHealthOf(runtime, input)),
        implement(originTest.tryOrigin, (input, call) => originTests.run(input, call)),
        implement(originTest.tryOriginFromNode, (input, call) => originTests.runFromNode(input, call)),
        implement(sites.launch, (input) => launchCheck(runtime, input)),
        implement(originAllowList.get, () => getOriginAllowList(runtime)),
        implement(originAllowList.set, (input, call) => setOriginAllowList(runtime, input, call)),
      ]),
    ],
  };
};
