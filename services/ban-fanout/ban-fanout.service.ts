// Emits the ban feed of clusters to the node channel's processes.
import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../runtime/env.ts';
import { FeedActor } from '../../runtime/feed-actor.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { banSource } from './ban-source.ts';

export const roles: readonly Role[] = ['worker'];

export default (runtime: Runtime): ServiceSchema => {
  let actor: FeedActor | null = null;
  return {
    name: 'ban-fanout',
    async started() {
      actor = new FeedActor(runtime, banSource(runtime.pools.channel));
      await actor.start();
    },
    async stopped() {
      await actor?.stop();
    },
  };
};
