// The numbers of the ban feed: every change of a ban gets the next one, in the order of commits, and is remembered until no
// node can need it any more.
//
// Order of use inside the transaction, as its last statements: announceBans of bans that are written and locked already,
// or nextBanSeq (takes the feed's lock), write the ban with that number, recordBanChange. Between them nothing slow, and
// no row that somebody else may have locked: every other ban of the console waits.
import type { Tx } from '../../runtime/write.ts';

export interface BanNumber {
  /** Both decimal strings. */
  epoch: string;
  seq: string;
}

export interface BanChange {
  banId: string;
  /** Whose nodes it concerns; null = all. */
  clusterId: string | null;
  /** The ban's expiry plus one hour: a copy that a node still holds has ended by itself by then. */
  keepUntil: Date;
  /** From {@link nextBanSeq} of this transaction; one is taken when absent. */
  number?: BanNumber;
}

/** Takes the feed's lock until the commit and answers the next number; gaps are allowed, disorder is not. */
export async function nextBanSeq(tx: Tx): Promise<BanNumber> {
  const { rows } = await tx.sql.raw<{ rows: { epoch: string; seq: string }[] }>(
    'select epoch::text, seq::text from ban_next()',
  );
  return rows[0]!;
}

/**
 * Gives bans written in this transaction their numbers and tells nodes of those that are shared or lifted. Last of the
 * transaction, because it takes the feed's lock.
 */
export async function announceBans(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await announce(tx, 'ban_announce(?)', [ids]);
}

/**
 * As {@link announceBans} for bans that a node's report has written; `met` are those that it has locked and left as they
 * were. Manual ones of their addresses that were made meanwhile take them over.
 */
export async function announceReportedBans(tx: Tx, written: readonly string[], met: readonly string[]): Promise<void> {
  if (written.length + met.length > 0) await announce(tx, 'ban_announce_merged(?, ?, ?)', [written, met, tx.now]);
}

async function announce(tx: Tx, call: string, bindings: readonly unknown[]): Promise<void> {
  const { rows } = await tx.sql.raw<{ rows: { epoch: string | null; seq: string | null }[] }>(
    `select epoch::text, seq::text from ${call}`,
    bindings as never,
  );
  const { epoch, seq } = rows[0]!;
  if (seq === null) return;
  tx.wake = true;
  tx.call.changes.push(`ban=${epoch}:${seq}`);
}

/** Records that a ban was made, renewed or lifted; answers its number and adds it to the call's changes. */
export async function recordBanChange(tx: Tx, change: BanChange): Promise<BanNumber> {
  const number = change.number ?? (await nextBanSeq(tx));
  await recordBanChanges(tx, [{ ...change, number }]);
  return number;
}

/** As {@link recordBanChange} for several bans in one round trip; each needs its own number. */
export async function recordBanChanges(tx: Tx, changes: readonly (BanChange & { number: BanNumber })[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.sql.raw('select ban_record(?, ?, ?, ?)', [
    changes.map(({ number }) => number.seq) as never,
    changes.map(({ banId }) => banId) as never,
    changes.map(({ clusterId }) => clusterId ?? '') as never,
    changes.map(({ keepUntil }) => keepUntil) as never,
  ]);
  tx.wake = true;
  const last = changes.at(-1)!.number;
  tx.call.changes.push(`ban=${last.epoch}:${last.seq}`);
}
