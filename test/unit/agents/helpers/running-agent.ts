// A whole agent in the process of the test, between a console and a data plane of the test; it can be started anew on what
// the one before left.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { edgePaths } from '../../../../agents/edge/paths.ts';
import { EdgeAgent } from '../../../../agents/edge/run/agent.ts';
import { markOf } from '../../../../agents/kit/process-info.ts';
import { TestAuthority } from './authority.ts';
import { TestCaddy } from './caddy.ts';
import { TestConsole } from './console.ts';
import { testIdentity } from './feeds.ts';
import { temporaryFolder } from './folder.ts';
import { memoryLog } from './log.ts';

export async function agentParts(t: ExecutionContext) {
  const stateDir = temporaryFolder(t);
  const paths = edgePaths(stateDir);
  mkdirSync(paths.edgeDir, { mode: 0o700 });
  const { log, lines } = memoryLog();
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  const caddy = new TestCaddy(join(stateDir, 'edge.sock'), paths.edgeDir);
  await caddy.start();
  const identity = await testIdentity(testConsole);
  const startAgent = async () => {
    const agent = new EdgeAgent({
      paths,
      socket: caddy.socket,
      statusFile: join(stateDir, 'status.json'),
      identity,
      log,
      banCapacity: 1000,
      kernelBans: 'off',
      nftBin: 'nft',
      nftTable: 'svc_test',
      proxyPeers: [],
      owner: markOf(process.pid)!,
      keepTable: true,
    });
    await agent.start();
    let stopping: Promise<void> | undefined;
    const stop = () => {
      stopping ??= agent.stop();
      return stopping;
    };
    t.teardown(stop);
    return { stop };
  };
  t.teardown(async () => {
    await testConsole.stop();
    await caddy.kill();
  });
  return { lines, paths, testConsole, caddy, startAgent };
}
