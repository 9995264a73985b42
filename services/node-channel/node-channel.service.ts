import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { ChannelServer } from './channel-server.ts';

export const roles: Role[] = ['channel'];
export const pools = { api: 10, bans: 6, channel: 6, ingest: 1 };

export default (runtime: Runtime): ServiceSchema => {
  const server = new ChannelServer(runtime);
  runtime.listeners.push(server);
  return { name: 'node-channel' };
};
