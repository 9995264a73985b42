// What a launcher on this machine reports of its build of the edge, beside the downloads (bin/lib/edge-build-report.ts).
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Value } from 'typebox/value';
import { EdgeBuild } from '../contract/resources/system.ts';

/** As a launcher writes it, once a second. */
export type EdgeBuildReport = Static<typeof Report>;
const Report = Type.Object({ ...EdgeBuild.properties, updatedAt: Type.String() });
/** The report's name in the folder of downloads. */
export const EDGE_BUILD_FILE = 'edge-build.json';
/** A build that says nothing for so long was killed. */
const FORGOTTEN_MS = 30_000;

/** The build of the edge that is under way or failed on the console's machine; undefined where there is none. */
export async function edgeBuild(downloadsDir: string | null): Promise<Static<typeof EdgeBuild> | undefined> {
  if (downloadsDir === null) return undefined;
  const report = await readReport(join(downloadsDir, EDGE_BUILD_FILE));
  if (!Value.Check(Report, report)) return undefined;
  const { updatedAt, ...build } = report;
  const silentMs = Date.now() - Date.parse(updatedAt);
  return build.state === 'building' && !(silentMs < FORGOTTEN_MS) ? undefined : build;
}

async function readReport(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch {
    // Most consoles build nothing, and half a report is none.
    return undefined;
  }
}
