import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { ChannelServer } from './channel-server.ts';

export const roles: Role[] = ['channel'];

export default (runtime: Runtime): ServiceSchema => {
  const server = new ChannelServer(runtime);
  runtime.listeners.push(server);
  return { name: 'node-channel' };
};
