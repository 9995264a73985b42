// Schemathesis (Python).
import { join } from 'node:path';
import { cacheDir } from '../../bin/lib/root.ts';
import { ensurePythonTool } from './python-tool.ts';

/** Where the output of a run that found something is kept. */
export const schemathesisReport = join(cacheDir, 'test-logs', 'schemathesis-report.txt');

/** Installs it unless it is there; answers the path of its command. */
export async function ensureSchemathesis(): Promise<string> {
  return join(await ensurePythonTool('schemathesis'), 'st');
}
