// The content of a file as the body of an answer.
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';

/** A client that takes nothing for so long keeps no file open. */
const STALLED_MS = 60_000;
const CLIENT_GONE = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE', 'ECONNRESET', 'EPIPE']);

/** Sends `length` bytes from `start` as fast as the client takes them, and closes the file. The head is written before. */
export async function sendContent(
  handle: FileHandle,
  response: ServerResponse,
  start: number,
  length: number,
): Promise<void> {
  if (length === 0) {
    response.end();
    return handle.close();
  }
  response.setTimeout(STALLED_MS, () => response.destroy());
  // The stream closes the file, also when the client goes away or went while the file was opened.
  const content = handle.createReadStream({ start, end: start + length - 1 });
  try {
    await pipeline(content, response, { end: false });
    // A file that became shorter meanwhile: the client must not take the rest for the whole.
    if (content.bytesRead < length) response.destroy();
    else response.end();
  } catch (error) {
    content.destroy();
    response.destroy();
    if (!CLIENT_GONE.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
