// What the worker of orders needs of the world outside, beside the authority: named here, so that tests can stand in.
import { Resolver } from 'node:dns/promises';

const QUERY_MS = 3_000;

/** Asks for addresses of names, for what they are aliases of, and for servers of zones. */
export type NameResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'resolveCname' | 'resolveNs'>;

export interface Tools {
  resolver: NameResolver;
}

export const TOOLS: Tools = { resolver: new Resolver({ timeout: QUERY_MS, tries: 2 }) };
