// Entries of a list as text, and what differs between two versions of them. Pure.
import { formatCidr, parseCidr } from '@contract/scalars/cidr.ts';

export interface ReadEntries {
  /** Canonical, each once, in the order of the text. */
  entries: string[];
  /** What is no address, at most as many as are worth showing, with the line. */
  wrong: { line: number; text: string }[];
  wrongCount: number;
}

export interface EntryChange {
  added: string[];
  removed: string[];
}

const SHOWN_WRONG = 20;

/** Reads addresses and ranges separated by white space, commas or semicolons; the rest of a line after # is a remark. */
export function readEntries(text: string): ReadEntries {
  const entries = new Set<string>();
  const wrong: ReadEntries['wrong'] = [];
  let wrongCount = 0;
  text.split('\n').forEach((line, index) => {
    for (const part of line.split('#', 1)[0]!.split(/[\s,;]+/)) {
      if (part === '') continue;
      const cidr = parseCidr(part);
      if (cidr) {
        entries.add(formatCidr(cidr));
        continue;
      }
      wrongCount++;
      if (wrong.length < SHOWN_WRONG) wrong.push({ line: index + 1, text: part.slice(0, 64) });
    }
  });
  return { entries: [...entries], wrong, wrongCount };
}

/** What somebody did who had `before` and now has `after`. */
export function entryChange(before: readonly string[], after: readonly string[]): EntryChange {
  const [old, now] = [new Set(before), new Set(after)];
  return { added: after.filter((entry) => !old.has(entry)), removed: before.filter((entry) => !now.has(entry)) };
}

/** The same change on top of another version. */
export function applyChange(entries: readonly string[], { added, removed }: EntryChange): string[] {
  const gone = new Set(removed);
  return [...new Set([...entries.filter((entry) => !gone.has(entry)), ...added])];
}
