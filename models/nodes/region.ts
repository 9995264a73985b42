import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';
import { searchPattern } from '../db/search-pattern.ts';

export class Region extends BaseModel {
  static override tableName = 'region';

  declare id: string;
  declare name: string;
  declare code: string;
  declare createdAt: Date;
  declare updatedAt: Date;

  static async byId(sql: Knex, id: string): Promise<Region | undefined> {
    return Region.query(sql).findById(id);
  }

  /** Locked against other writers and deletion until the end of the transaction. */
  static async locked(sql: Knex, id: string): Promise<Region | undefined> {
    return Region.query(sql).findById(id).forUpdate();
  }
}

export interface RegionSummary {
  id: string;
  name: string;
  code: string;
  groups: number;
  created_at: Date;
  updated_at: Date;
}

const SUMMARY = `
  select r.*, (select count(*)::int from node_group g where g.region_id = r.id) as groups from region r`;

const FOUND = 'where (lower(r.name) like lower(:pattern) or r.code like lower(:pattern))';

/** Regions by code whose name or code has the text in it. */
export async function regionPage(
  sql: Knex,
  search: string | undefined,
  limit: number,
  offset: number,
): Promise<RegionSummary[]> {
  const bindings = { pattern: searchPattern(search), limit, offset };
  const { rows } = await sql.raw(`${SUMMARY} ${FOUND} order by r.code limit :limit offset :offset`, bindings);
  return rows;
}

export async function regionSummary(sql: Knex, id: string): Promise<RegionSummary | undefined> {
  const { rows } = await sql.raw(`${SUMMARY} where r.id = :id`, { id });
  return rows[0];
}

export async function regionCount(sql: Knex, search: string | undefined): Promise<number> {
  const pattern = searchPattern(search);
  const { rows } = await sql.raw(`select count(*)::int as total from region r ${FOUND}`, { pattern });
  return rows[0].total;
}
