import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { Reporters } from '../../../../../agents/edge/security/reporters.ts';
import { SecurityJournal } from '../../../../../agents/edge/security/security-journal.ts';
import { SecurityBatchSchema } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { eventually } from '../../../../helpers/eventually.ts';
import { TestClock } from '../../helpers/clock.ts';
import { temporaryFolder } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { levels } from '../../helpers/security.ts';

interface Said {
  hasState: boolean;
  sites: { siteId: string; level: number }[];
}

test('levels above normal are reported again while they hold, and a quiet node reports nothing', async (t) => {
  const clock = new TestClock();
  const { log } = memoryLog();
  const path = join(temporaryFolder(t), 'security.journal');
  const journal = SecurityJournal.open({ path, nodeId: 'n', clusterId: 'c', capacity: 100, log, clock });
  const said: Said[] = [];
  const channel = { reportSecurity: async (report: Said) => void said.push(report) };
  const serverClock = { offsetMs: () => 0 };
  const reporters = new Reporters({ journal, log, clock, channel: () => channel, serverClock } as never);
  t.teardown(async () => {
    await reporters.stop();
    await journal.close();
  });
  let sequence = 0n;
  const take = (level: number) => {
    const content = { instanceId: 'one', sequence: ++sequence, sites: [levels('s1', level)] };
    journal.takeBatch(create(SecurityBatchSchema, content));
    reporters.soon();
  };
  reporters.onConnected();
  take(2);
  await eventually(() => said.length >= 2, { timeoutMs: 60_000, what: 'a second report of the same levels' });
  for (const { hasState, sites } of said) {
    t.true(hasState);
    t.like(sites, [{ siteId: 's1', level: 2 }]);
  }
  take(0);
  await eventually(() => said.at(-1)!.sites.length === 0, { timeoutMs: 60_000, what: 'the report that it is over' });
  t.true(said.at(-1)!.hasState);
});
