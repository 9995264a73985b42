// Whose nodes may still report what they counted for a site: those of the cluster that it was in. And what it was called.
import type { Tx } from '../../runtime/write.ts';

/** Remembers the site, which is deleted in this transaction, for as long as usage is kept. */
export async function rememberDeletedSite(
  tx: Tx,
  site: { id: string; name: string },
  clusterId: string,
): Promise<void> {
  await tx
    .sql('deleted_site')
    .insert({ site_id: site.id, name: site.name, cluster_id: clusterId, deleted_at: tx.now })
    .onConflict('site_id')
    .ignore();
}
