// Emits the ban feed of clusters to the node channel's processes.
import type { ServiceSchema } from 'moleculer';
import { feedActor } from '../../mixins/feed-actor.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import banFeed from './ban-fanout.feed.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { channel: 4 };

export default (runtime: Runtime): ServiceSchema => ({ name: 'ban-fanout', mixins: [feedActor(runtime, banFeed)] });
