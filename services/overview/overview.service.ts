import type { ServiceBroker, ServiceSchema } from 'moleculer';
import type { Output } from '../../contract/procedure.ts';
import { nodeChannelSettings } from '../../contract/resources/node-channel-settings.ts';
import { overview } from '../../contract/resources/overview.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { Recent } from '../../models/db/recent.ts';
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
  return {
    name: 'overview',
    mixins: [
      contractService([
        implement(overview.get, ({ clusterId }) =>
          answer.get(() => readOverview(runtime, clusterId ?? null, () => channel.known()), clusterId),
        ),
        implement(overview.traffic, async ({ clusterId, hours }) =>
          presentTraffic(await minutes.get(() => readTraffic(runtime, clusterId ?? null), clusterId), hours),
        ),
      ]),
    ],
    started() {
      broker = this.broker;
    },
  };
};
