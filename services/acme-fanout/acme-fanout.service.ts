// Emits what certificate authorities are answered to the node channel's processes.
import type { ServiceSchema } from 'moleculer';
import { feedActor } from '../../mixins/feed-actor.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import acmeFeed from './acme-fanout.feed.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { channel: 4 };

export default (runtime: Runtime): ServiceSchema => ({ name: 'acme-fanout', mixins: [feedActor(runtime, acmeFeed)] });
