import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { regions } from '../../contract/resources/regions.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import { Region, type RegionSummary, regionCount, regionPage, regionSummary } from '../../models/nodes/region.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type RegionOutput = Output<typeof regions.create>;

function present(row: RegionSummary): RegionOutput {
  return {
    id: row.id,
    name: row.name,
    code: row.code,
    nodeGroupCount: row.groups,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

function asCodeTaken(code: string): (error: unknown) => never {
  return (error) => {
    if (violatedConstraint(error) === 'region_code_key') fail('REGION_CODE_TAKEN', { code });
    throw error;
  };
}

export async function listRegions(
  runtime: Runtime,
  input: Input<typeof regions.list>,
): Promise<Output<typeof regions.list>> {
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    regionPage(runtime.pools.api, input.search, limit, offset),
    regionCount(runtime.pools.api, input.search),
  ]);
  return { items: rows.map(present), total };
}

export async function createRegion(
  runtime: Runtime,
  input: Input<typeof regions.create>,
  call: Call,
): Promise<RegionOutput> {
  return write(runtime, call, { status: 201 }, async (tx) => {
    const { name, code } = input;
    const { id } = await Region.query(tx.sql)
      .insert({ name, code, createdAt: tx.now, updatedAt: tx.now })
      .returning('id')
      .catch(asCodeTaken(code));
    await recordAudit(tx, 'region.create', { type: 'region', id, name }, { code });
    return present((await regionSummary(tx.sql, id))!);
  });
}

export async function updateRegion(
  runtime: Runtime,
  input: Input<typeof regions.update>,
  call: Call,
): Promise<RegionOutput> {
  return write(runtime, call, {}, async (tx) => {
    const region = (await Region.locked(tx.sql, input.id)) ?? fail('REGION_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, region.updatedAt);
    const { name = region.name, code = region.code } = input;
    if (name !== region.name || code !== region.code) {
      const updatedAt = nextUpdatedAt(region.updatedAt, tx.now);
      await Region.query(tx.sql).patch({ name, code, updatedAt }).where({ id: region.id }).catch(asCodeTaken(code));
      await recordAudit(tx, 'region.update', { type: 'region', id: region.id, name }, { name, code });
    }
    return present((await regionSummary(tx.sql, region.id))!);
  });
}

export async function deleteRegion(
  runtime: Runtime,
  input: Input<typeof regions.delete>,
  call: Call,
): Promise<Record<string, never>> {
  return write(runtime, call, {}, async (tx) => {
    const region = (await Region.locked(tx.sql, input.id)) ?? fail('REGION_NOT_FOUND');
    await Region.query(tx.sql).deleteById(region.id);
    await recordAudit(tx, 'region.delete', { type: 'region', id: region.id, name: region.name });
    return {};
  });
}
