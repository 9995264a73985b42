// Who refers to an IP list, as each feature that stores such references knows it.
import type { Knex } from 'knex';
import type { Static } from 'typebox';
import type { IpListUser as Schema } from '../../contract/resources/ip-lists.ts';

export type IpListUser = Static<typeof Schema>;

/** What a feature knows of its references to a list; both are answered from an index. */
export interface IpListUsers {
  count(sql: Knex, ipListId: string): Promise<number>;
  /** Users in an order of their own that stays. */
  page(sql: Knex, ipListId: string, limit: number, offset: number): Promise<IpListUser[]>;
}
