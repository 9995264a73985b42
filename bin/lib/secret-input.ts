// Secrets that a person types: from the terminal without echo, or the first line of what is piped in.
import { Refusal } from './progress.ts';

/** More than any secret; a terminal that sends more is not typed at. */
const LONGEST = 4096;

const ENTER = /[\r\n]/;
const INTERRUPT = '\u0003';
const END = '\u0004';
const KILL_LINE = '\u0015';
const ERASE = new Set(['\u007f', '\b']);

/** Asks for each prompt in turn on the terminal; answers what was typed. Throws Refusal for Ctrl-C and Ctrl-D. */
export async function typeSecrets(prompts: readonly string[]): Promise<string[]> {
  const { stdin, stderr } = process;
  stdin.setEncoding('utf8').setRawMode(true);
  const secrets: string[] = [];
  let line = '';
  try {
    stderr.write(prompts[0]!);
    for await (const text of stdin.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
      for (const key of text) {
        if (key === INTERRUPT || key === END) throw new Refusal('canceled, nothing was changed');
        if (ERASE.has(key)) line = [...line].slice(0, -1).join('');
        else if (key === KILL_LINE) line = '';
        else if (!ENTER.test(key)) line = (line + key).slice(0, LONGEST);
        else {
          secrets.push(line);
          line = '';
          stderr.write('\n');
          if (secrets.length === prompts.length) return secrets;
          stderr.write(prompts[secrets.length]!);
        }
      }
    }
    throw new Refusal('the terminal was closed, nothing was changed');
  } finally {
    stdin.setRawMode(false);
  }
}

/** The first line of standard input. */
export async function pipedSecret(): Promise<string> {
  let text = '';
  for await (const part of process.stdin.setEncoding('utf8') as AsyncIterable<string>) {
    text += part;
    if (text.includes('\n') || text.length > LONGEST) break;
  }
  return text.split(/\r?\n/, 1)[0]!;
}
