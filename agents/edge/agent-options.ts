import type { NodeIdentity } from '../kit/channel-client.ts';
import type { Log } from '../kit/log.ts';
import type { ProcessMark } from '../kit/process-info.ts';
import type { EdgePaths } from './paths.ts';

export interface AgentOptions {
  paths: EdgePaths;
  /** Caddy's socket. */
  socket: string;
  statusFile: string;
  identity: NodeIdentity;
  log: Log;
  banCapacity: number;
  kernelBans: 'auto' | 'on' | 'off';
  nftBin: string;
  nftTable: string;
  proxyPeers: readonly string[];
  /** Process the kernel table belongs to. */
  owner: ProcessMark;
  /** Leave the kernel table to the supervisor when stopping. */
  keepTable: boolean;
}
