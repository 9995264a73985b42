import type { ServiceSchema } from 'moleculer';
import { addresses } from '../../contract/resources/addresses.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { addressDossier } from './dossier.ts';
import { locateAddresses } from './locations.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'addresses',
  mixins: [
    contractService([
      implement(addresses.get, (input) => addressDossier(runtime, input)),
      implement(addresses.locate, (input) => locateAddresses(runtime, input)),
    ]),
  ],
});
