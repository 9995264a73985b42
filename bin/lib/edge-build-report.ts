// How far the build of the edge is, told beside the downloads of this machine's consoles: who opens a console before its
// first node is there sees what it waits for.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EDGE_BUILD_FILE, type EdgeBuildReport } from '../../runtime/edge-build.ts';

const EVERY_MS = 1000;

export interface Reporter {
  /** How many packages are compiled. */
  packages(count: number): void;
  /** The end: nothing is left to report of a build that went well. */
  end(state: 'built' | 'failed'): void;
}

/** Begins to report a build in the folder, once a second. A folder that cannot be written gets no report. */
export function reportEdgeBuild(folder: string): Reporter {
  const file = join(folder, EDGE_BUILD_FILE);
  const startedAt = new Date().toISOString();
  let packages = 0;
  const write = (state: EdgeBuildReport['state']) => {
    const report: EdgeBuildReport = { state, packages, startedAt, updatedAt: new Date().toISOString() };
    try {
      mkdirSync(folder, { recursive: true });
      writeFileSync(`${file}.new`, JSON.stringify(report));
      renameSync(`${file}.new`, file);
    } catch {
      // The build is what matters.
    }
  };
  write('building');
  const timer = setInterval(() => write('building'), EVERY_MS);
  timer.unref();
  return {
    packages(count) {
      packages = count;
    },
    end(state) {
      clearInterval(timer);
      if (state === 'failed') write('failed');
      else rmSync(file, { force: true });
    },
  };
}
