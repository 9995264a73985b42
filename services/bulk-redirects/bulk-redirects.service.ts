import type { ServiceSchema } from 'moleculer';
import { bulkRedirects } from '../../contract/resources/bulk-redirects.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getBulkRedirects, setBulkRedirects } from './bulk-redirects.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'bulk-redirects',
  mixins: [
    contractService([
      implement(bulkRedirects.get, (input) => getBulkRedirects(runtime, input)),
      implement(bulkRedirects.set, (input, call) => setBulkRedirects(runtime, input, call)),
    ]),
  ],
});
