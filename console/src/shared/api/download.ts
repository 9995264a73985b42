// Procedures whose answer is a file: it is kept by the browser, not shown.
import type { AnyProcedure, Input } from '@contract/procedure.ts';
import { rpcPath, withSession } from './call.ts';
import { requestFile } from './request.ts';
import { saveFile } from './save-file.ts';

/** Saves what the procedure answers, once all of it is there; answers the file's name. Throws CallError. */
export async function download<P extends AnyProcedure>(
  procedure: P,
  input: Input<P>,
  signal: AbortSignal,
): Promise<string> {
  const headers = { 'x-csrf-token': 'orpc' };
  const { content, name } = await withSession(() => requestFile(rpcPath(procedure), { body: input, headers, signal }));
  saveFile(content, name || procedure.name);
  return name || procedure.name;
}
