import type { ServiceSchema } from 'moleculer';
import { siteHttps } from '../../contract/resources/site-https.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getSiteHttps, setSiteHttps } from './site-https.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'site-https',
  mixins: [
    contractService([
      implement(siteHttps.get, (input) => getSiteHttps(runtime, input)),
      implement(siteHttps.set, (input, call) => setSiteHttps(runtime, input, call)),
    ]),
  ],
});
