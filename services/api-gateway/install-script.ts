// /install.sh: the installer of a node with this console's address in it. Nothing of a request goes into the script.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** In the installer, where the address of the console belongs. */
const PLACE = '@CONSOLE_URL@';

// Narrower than what a URL may be: `$`, a backtick and a quote are letters of a host name to its parser.
const ADDRESS = /^https?:\/\/(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/;

/** Text of the installer; throws when the address could be anything but one to the shell. */
export function installScript(publicUrl: string): string {
  if (!ADDRESS.test(publicUrl)) throw new TypeError('the public URL has characters with a meaning in a shell');
  return readFileSync(join(import.meta.dirname, 'install.sh'), 'utf8').replaceAll(PLACE, publicUrl);
}
