// Publishing: which entries of a cluster changed, as one numbered revision in the change's transaction.
import type { Tx } from '../mixins/write.ts';

export interface Publication {
  clusterId: string;
  /** What the change touched; a kind that compiles to nothing removes its entry. */
  entries: readonly { kind: string; id: string }[];
  /** Reason code (specification: Events) and its parameters. */
  reason: string;
  params?: Record<string, unknown>;
}

/**
 * Takes the cluster's head lock, compiles the entries, and publishes those that differ as the next revision. Answers
 * the revision's number as a decimal string, or null when nothing differs. Adds to the call's changes.
 */
export async function publish(_tx: Tx, _publication: Publication): Promise<string | null> {
  throw new Error('publishing is being written');
}

/**
 * Asks for the same publication in every cluster (or the given ones): the requests commit with the change, each cluster is published in
 * its own short transaction afterwards. Call {@link publishRequested} after the commit so that reads see it.
 */
export async function requestPublication(
  _tx: Tx,
  _publication: Omit<Publication, 'clusterId'>,
  _clusterIds?: readonly string[],
): Promise<void> {
  throw new Error('publishing is being written');
}
