// `npm run rooms`: files per room, arrows that lead back up from a room to a higher one, and circles by import of values.
// Exit code 1 when there is an arrow or a circle. `--folders` also counts the files of each folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { run } from './lib/commands.ts';
import { report } from './lib/progress.ts';
import { arrows, type Cruise, circles, filesPerRoom, ROOMS, upArrows } from './lib/rooms.ts';
import { root } from './lib/root.ts';

async function cruise(): Promise<Cruise> {
  const folders = ROOMS.filter((room) => existsSync(join(root, room)));
  const script = join(root, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruiser.mjs');
  const args = [script, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', ...folders];
  const { stdout } = await run(process.execPath, args, { cwd: root, maxBuffer: 1 << 28 });
  return JSON.parse(stdout) as Cruise;
}

try {
  const { values } = parseArgs({ options: { folders: { type: 'boolean', default: false } } });
  const found = await cruise();
  const all = arrows(found);
  const up = upArrows(all);
  const closed = circles(all);
  console.log('files  room, the lowest first');
  for (const { room, files, folders } of filesPerRoom(found)) {
    console.log(`${String(files).padStart(5)}  ${room}`);
    if (!values.folders) continue;
    for (const [folder, count] of [...folders].sort()) console.log(`${String(count).padStart(12)}  ${folder}`);
  }
  console.log(`${up.length} arrows lead back up`);
  for (const { from, to } of up) console.log(`  ${from} → ${to}`);
  console.log(`${closed.length} circles by import of values`);
  for (const files of closed) console.log(`  ${files.join(' ↔ ')}`);
  if (up.length + closed.length > 0) process.exitCode = 1;
} catch (error) {
  report(error);
}
