import type { Output } from '@contract/procedure.ts';
import type { clusters } from '@contract/resources/clusters.ts';

export type Cluster = Output<typeof clusters.get>;

/** Props of every tab of a cluster. */
export interface ClusterTabProps {
  cluster: Cluster;
  reload: () => Promise<void>;
}
