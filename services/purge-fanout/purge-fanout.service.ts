// Emits the purges of clusters to the node channel's processes.
import type { ServiceSchema } from 'moleculer';
import { feedActor } from '../../mixins/feed-actor.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import purgeFeed from './purge-fanout.feed.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { channel: 4 };

export default (runtime: Runtime): ServiceSchema => ({ name: 'purge-fanout', mixins: [feedActor(runtime, purgeFeed)] });
