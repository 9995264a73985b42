// Has nodes tell how what a publication changed fares.
import type { Tx } from '../../runtime/write.ts';
import { kindNamed } from '../config/entry-kinds.ts';
import { siteOfOwner } from '../config/entry-owner.ts';
import type { Difference, OverlayDifference, WrittenEntry } from '../config/write-revision.ts';
import type { Statement } from '../db/named-statement.ts';
import { type WatchedChange, watchChange, watchStatement } from './vital-watch.ts';

/** How long a publication to everybody is watched. */
export const UNDO_SECONDS = 300;

/** For as long as the canary can run: its window, and as much again for nodes that are late. */
export async function watchCandidate(
  tx: Tx,
  clusterId: string,
  revision: string,
  overlays: readonly OverlayDifference[],
): Promise<void> {
  const { seconds } = (await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .first(tx.sql.raw('ceil(extract(epoch from window_ends_at - now()))::int + window_seconds as seconds'))) as {
    seconds: number;
  };
  // Told whether this one routes otherwise than what everybody runs, whatever it was before.
  const changes = overlays.map(({ stable: [, stable], ...overlay }) => ({ ...overlay, before: stable as Settled }));
  await watchChange(tx.sql, watched({ clusterId, revision, track: 'C', seconds: Math.max(60, seconds) }, changes));
}

/** The statement that has what everybody gets watched, so that it can be taken back. */
export function watchForUndo(clusterId: string, revision: string, differences: readonly Difference[]): Statement {
  return watchStatement(watched({ clusterId, revision, track: 'S', seconds: UNDO_SECONDS }, differences));
}

type Settled = { settings?: object | null } | undefined;

interface Changed {
  kind: string;
  id: string;
  before: Settled;
  after: WrittenEntry | null | undefined;
}

function watched(of: Omit<WatchedChange, 'sites'>, changes: readonly Changed[]): WatchedChange {
  const sites = changes.map((change) => ({
    id: siteOfOwner(kindNamed(change.kind).ownerOf(change.id)) ?? '',
    origins: routes(change),
  }));
  return { ...of, sites };
}

/** What is not known counts as touched: errors of origins are looked at then. */
function routes({ kind: name, before, after }: Changed): boolean {
  const kind = kindNamed(name);
  if (!kind.routes) return false;
  const [from, to] = [before?.settings, after?.settings];
  return !from || !to || kind.routes({ ...kind.defaults, ...from }, { ...kind.defaults, ...to });
}
