import type { ServiceBroker, ServiceSchema } from 'moleculer';
import type { Output } from '../../contract/procedure.ts';
import { nodeChannelSettings } from '../../contract/resources/node-channel-settings.ts';
import { overview } from '../../contract/resources/overview.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { Recent } from '../../models/recent.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { ChannelFinding } from './channel-finding.ts';
import { readOverview } from './overview.ts';
import { presentTraffic, readTraffic } from './traffic.ts';

export const roles: Role[] = ['app'];

const ANSWER_MS = 2_000;
const TRAFFIC_MS = 10_000;

export default (runtime: Runtime): ServiceSchema => {
  let broker: ServiceBroker | null = null;
  const channel = new ChannelFinding(async () => {
    const meta = { call: systemCall('overview') };
    const { name } = nodeChannelSettings.check;
    const check = await broker!.call<Output<typeof nodeChannelSettings.check>, object>(name, {}, { meta });
    return check.result;
  });
  const answer = new Recent<Output<typeof overview.get>>(ANSWER_MS);
  const minutes = new Recent<Awaited<ReturnType<typeof readTraffic>>>(TRAFFIC_MS);
  const readAnswer = () => readOverview(runtime, () => channel.known());
  const readMinutes = () => readTraffic(runtime);
  return {
    name: 'overview',
    mixins: [
      contractService([
        implement(overview.get, () => answer.get(readAnswer)),
        implement(overview.traffic, async (input) => presentTraffic(await minutes.get(readMinutes), input)),
      ]),
    ],
    started() {
      broker = this.broker;
    },
  };
};
