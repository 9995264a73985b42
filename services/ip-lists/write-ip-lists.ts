// Writes of IP lists. Locks in order: the ban guard (before addresses become protected), the limits, the list.
import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type ipLists, MAX_ENTRIES_IN_ALL, MAX_IP_LISTS, MAX_LIST_ENTRIES } from '../../contract/resources/ip-lists.ts';
import { normaliseCidrs } from '../../contract/scalars/cidr.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { holdBanGuard } from '../../models/bans/ban-guard.ts';
import { listOwner } from '../../models/config/entry-owner.ts';
import type { Publication } from '../../models/config/publish.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import type { EntryName } from '../../models/config/write-revision.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import { chunkId } from '../../models/rules/ip-list.entry.ts';
import {
  addIpListEntries,
  chunkOf,
  insertIpList,
  ipListById,
  ipListEntries,
  lockIpList,
  lockIpListTotals,
  deleteIpList as removeIpList,
  removeIpListEntries,
  updateIpList as saveIpList,
} from '../../models/rules/ip-list.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, type WriteOptions, write } from '../../runtime/write.ts';
import { type IpListOutput, presentIpList } from './list-ip-lists.ts';
import { usersOfIpList } from './references.ts';

const USERS_IN_REFUSAL = 5;

/** Throws IP_LIST_NAME_TAKEN, IP_LIST_LIMIT, BAD_REQUEST. */
export async function createIpList(
  runtime: Runtime,
  input: Input<typeof ipLists.create>,
  call: Call,
): Promise<IpListOutput> {
  const entries = canonicalEntries(input.entries);
  return writeEverywhere(runtime, call, { status: 201 }, async (tx, publish) => {
    if (input.kind === 'allow') await holdBanGuard(tx.sql);
    const totals = await lockIpListTotals(tx.sql);
    if (totals.lists >= MAX_IP_LISTS) fail('IP_LIST_LIMIT', { limit: MAX_IP_LISTS, of: 'lists' });
    assertTotal(totals.entries + entries.length);
    const { name, kind } = input;
    const id = await insertIpList(tx.sql, { name, kind, entryCount: entries.length }, tx.now).catch((error) => {
      if (violatedConstraint(error) === 'ip_list_name_key') fail('IP_LIST_NAME_TAKEN', { name });
      throw error;
    });
    await addIpListEntries(tx.sql, id, entries);
    await recordAudit(tx, 'ip_list.create', { type: 'ip_list', id, name }, { kind, entries: entries.length });
    await publish({ id, name }, { entries: changedEntries(id, entries) });
    return presentIpList((await ipListById(tx.sql, id))!, entries);
  });
}

/** Replaces entries and kind; publishes only chunks that differ. Throws the contract's errors. */
export async function updateIpList(
  runtime: Runtime,
  input: Input<typeof ipLists.update>,
  call: Call,
): Promise<IpListOutput> {
  const entries = canonicalEntries(input.entries);
  return writeEverywhere(runtime, call, {}, async (tx, publish) => {
    if (input.kind === 'allow') await holdBanGuard(tx.sql);
    const totals = await lockIpListTotals(tx.sql);
    const list = (await lockIpList(tx.sql, input.id)) ?? fail('IP_LIST_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, list.updatedAt);
    const before = normaliseCidrs(await ipListEntries(tx.sql, list.id)).cidrs;
    const [had, has] = [new Set(before), new Set(entries)];
    const added = entries.filter((cidr) => !had.has(cidr));
    const removed = before.filter((cidr) => !has.has(cidr));
    if (added.length + removed.length === 0 && list.kind === input.kind) return presentIpList(list, entries);
    if (entries.length > before.length) assertTotal(totals.entries - before.length + entries.length);
    await removeIpListEntries(tx.sql, list.id, removed);
    await addIpListEntries(tx.sql, list.id, added);
    const updatedAt = nextUpdatedAt(list.updatedAt, tx.now);
    const after = { ...list, kind: input.kind, entryCount: entries.length, updatedAt };
    await saveIpList(tx.sql, list.id, after);
    await recordAudit(
      tx,
      'ip_list.update',
      { type: 'ip_list', id: list.id, name: list.name },
      { kind: input.kind, added: added.length, removed: removed.length },
    );
    await publish(list, { entries: changedEntries(list.id, [...added, ...removed]) });
    return presentIpList(after, entries);
  });
}

/** Throws IP_LIST_NOT_FOUND, IP_LIST_IN_USE. */
export async function deleteIpList(
  runtime: Runtime,
  input: Input<typeof ipLists.delete>,
  call: Call,
): Promise<Output<typeof ipLists.delete>> {
  return writeEverywhere(runtime, call, {}, async (tx, publish) => {
    await lockIpListTotals(tx.sql);
    const list = (await lockIpList(tx.sql, input.id)) ?? fail('IP_LIST_NOT_FOUND');
    const { items: users } = await usersOfIpList(tx.sql, list.id, { limit: USERS_IN_REFUSAL, offset: 0 });
    if (users.length > 0) fail('IP_LIST_IN_USE', { users: users.map(({ name }) => name) });
    await removeIpList(tx.sql, list.id);
    await recordAudit(tx, 'ip_list.delete', { type: 'ip_list', id: list.id, name: list.name });
    await publish(list, { entries: [], ends: [listOwner(list.id)] });
    return {};
  });
}

type Publish = (list: { id: string; name: string }, change: Pick<Publication, 'entries' | 'ends'>) => Promise<void>;

/** A write whose list is published on every cluster. */
async function writeEverywhere<T>(
  runtime: Runtime,
  call: Call,
  options: WriteOptions,
  work: (tx: Tx, publish: Publish) => Promise<T>,
): Promise<T> {
  let clusterIds: string[] = [];
  const output = await write(runtime, call, options, (tx) =>
    work(tx, async ({ id, name }, change) => {
      const params = { ipList: name, ipListId: id };
      clusterIds = await requestPublication(tx, { ...change, reason: 'rules_updated', params });
    }),
  );
  await publishRequested(runtime, call, clusterIds);
  return output;
}

/** A list's header and the chunks of the given entries. */
function changedEntries(id: string, changed: readonly string[]): EntryName[] {
  const chunks = [...new Set(changed.map(chunkOf))].sort((a, b) => a - b);
  return [{ kind: 'ip-list', id }, ...chunks.map((chunk) => ({ kind: 'ip-list-chunk', id: chunkId(id, chunk) }))];
}

function canonicalEntries(texts: readonly string[]): string[] {
  const { cidrs, invalid } = normaliseCidrs(texts);
  if (invalid !== null) badField(`/entries/${invalid}`, 'cidr');
  if (cidrs.length > MAX_LIST_ENTRIES) fail('IP_LIST_LIMIT', { limit: MAX_LIST_ENTRIES, of: 'list' });
  return cidrs;
}

function assertTotal(entries: number): void {
  if (entries > MAX_ENTRIES_IN_ALL) fail('IP_LIST_LIMIT', { limit: MAX_ENTRIES_IN_ALL, of: 'entries' });
}
