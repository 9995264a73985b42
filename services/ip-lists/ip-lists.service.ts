import type { ServiceSchema } from 'moleculer';
import { ipLists } from '../../contract/resources/ip-lists.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getIpList, listIpLists, usageOfIpList } from './list-ip-lists.ts';
import { createIpList, deleteIpList, updateIpList } from './write-ip-lists.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'ip-lists',
  mixins: [
    contractService([
      implement(ipLists.list, (input) => listIpLists(runtime, input)),
      implement(ipLists.get, (input) => getIpList(runtime, input)),
      implement(ipLists.usage, (input) => usageOfIpList(runtime, input)),
      implement(ipLists.create, (input, call) => createIpList(runtime, input, call)),
      implement(ipLists.update, (input, call) => updateIpList(runtime, input, call)),
      implement(ipLists.delete, (input, call) => deleteIpList(runtime, input, call)),
    ]),
  ],
});
