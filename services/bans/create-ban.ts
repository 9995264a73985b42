import { ContractError } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import type { AuditRecord } from '../../models/audit/audit-entry.ts';
import { type BanCheck, type BanWrite, checkBans, creatorOf, writeManualBans } from '../../models/bans/ban.ts';
import { roomForBans } from '../../models/bans/ban-limit.ts';
import type { Call } from '../../runtime/call.ts';
import { GroupedWrites } from '../../runtime/grouped-writes.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Outcome, Tx } from '../../runtime/write.ts';
import { assertUnprotected, type CheckedBan, checkBanInput } from './check-ban.ts';
import { type BanOutput, presentBan } from './present-ban.ts';

export type CreateBan = (input: Input<typeof bans.create>, call: Call) => Promise<BanOutput>;

/** A ban that may be written, and what its record and answer need. */
interface Judged {
  tx: Tx;
  checked: CheckedBan;
  found: BanCheck;
  write: BanWrite;
}

/**
 * Bans an address for a time:
 *
 * | The target's manual ban | Next                                             | Audit      |
 * |-------------------------|--------------------------------------------------|------------|
 * | none, lifted, expired   | a new ban, if the limit allows                   | ban.create |
 * | active                  | the same ban with the given reason and expiry    | ban.update |
 *
 * Bans asked for at the same time share a transaction; each has its own outcome. Throws the errors the contract lists.
 */
export function banCreator(runtime: Runtime): CreateBan {
  const groups = new GroupedWrites<CheckedBan, BanOutput>(runtime, {
    pool: 'bans',
    key: ({ siteId, text }) => `${siteId ?? ''} ${text}`,
    work: createBans,
  });
  return async (input, call) => groups.run(checkBanInput(input), call);
}

async function createBans(
  txs: readonly Tx[],
  checked: readonly CheckedBan[],
  patient: boolean,
): Promise<Outcome<BanOutput>[]> {
  const { sql, now } = txs[0]!;
  const targets = checked.map(({ siteId, text }) => ({ siteId, cidr: text }));
  const found = await checkBans(sql, targets, now, patient);
  const judged = txs.map((tx, index) => judge(tx, checked[index]!, found[index]!));
  await refuseBeyondLimit(judged);
  const written = judged.flatMap((each) => ('output' in each ? [each.output] : []));
  const numbers = await writeManualBans(
    sql,
    now,
    written.map(({ tx, write }) => [tx, write]),
    written.map((each) => [each.tx, auditOf(each)]),
  );
  const answers = new Map(written.map((each, index) => [each, present(each, numbers[index]!)]));
  return judged.map((each) => ('output' in each ? { output: answers.get(each.output)! } : each));
}

function judge(tx: Tx, checked: CheckedBan, found: BanCheck): Outcome<Judged> {
  const { siteId, text: cidr, reason, durationSeconds } = checked;
  if (siteId !== null && !found.site) return { error: new ContractError('SITE_NOT_FOUND') };
  try {
    assertUnprotected(checked.cidr, found.protected);
  } catch (error) {
    return { error };
  }
  const active = found.before?.active ? found.before : null;
  const write = {
    id: active?.id ?? found.newId,
    renews: active !== null,
    siteId,
    clusterId: found.site?.clusterId ?? null,
    cidr,
    reason,
    expiresAt: new Date(tx.now.getTime() + durationSeconds * 1000),
  };
  return { output: { tx, checked, found, write } };
}

/** Renewals are exempt; of new bans the first keep their place. */
async function refuseBeyondLimit(judged: Outcome<Judged>[]): Promise<void> {
  const wanted = judged.flatMap((each, index) => ('output' in each && !each.output.write.renews ? [index] : []));
  const last = wanted.at(-1);
  if (last === undefined) return;
  // The last to be checked knows of most numbers taken meanwhile.
  const { tx, found } = (judged[last] as { output: Judged }).output;
  const limit = found.settings.maxTotal;
  const room = await roomForBans(tx.sql, { most: found.most, limit, wanted: wanted.length }, tx.now);
  for (const index of wanted.slice(room)) judged[index] = { error: new ContractError('BAN_PLATFORM_LIMIT', { limit }) };
}

function auditOf({ checked, found, write }: Judged): AuditRecord {
  const { siteId, reason } = checked;
  return {
    action: write.renews ? 'ban.update' : 'ban.create',
    target: { type: 'ban', id: write.id, name: checked.text },
    metadata: { reason, siteId, siteName: found.site?.name ?? null, expiresAt: write.expiresAt.toISOString() },
  };
}

function present({ tx, found: { site, before }, write }: Judged, seq: string): BanOutput {
  const { renews, ...ban } = write;
  return presentBan({
    ...ban,
    ...(renews ? before! : { createdAt: tx.now, createdBy: creatorOf(tx), unappliedNodes: 0 }),
    id: write.id,
    seq,
    scope: write.siteId === null ? 'platform' : 'site',
    siteName: site?.name ?? null,
    source: 'manual',
    nodeId: null,
    nodeName: null,
    trigger: null,
    distributed: true,
  });
}
