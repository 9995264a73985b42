// Sentences of Markdown documents, with the line each begins on.

export interface Sentence {
  line: number;
  /** As it is written, but for links and emphasis. */
  text: string;
  /** The same with `Code` in the place of each code span. */
  plain: string;
  words: number;
}

/** Stands for a code span; a capital, because a sentence may begin with one. */
const CODE = 'Code';
const SPAN = /`[^`]*`/g;

/** A link is its text. */
const PLAIN: readonly (readonly [RegExp, string])[] = [
  [/!?\[([^\]]*)\]\([^)]*\)/g, '$1'],
  [/<[^>]+>/g, ' '],
  [/\*{1,2}(\S[^*]*\S|\S)\*{1,2}/g, '$1'],
];

/** After an end mark, before what can begin a sentence. */
const BORDER = /(?<=[.?!]["')”]?)\s+(?=["'(“]?[\p{Lu}\d])/u;

const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

interface Block {
  line: number;
  text: string;
}

/** Headings, paragraphs, list items and table cells; no code blocks and comments. */
function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  let code: string | null = null;
  for (const [index, row] of markdown.split('\n').entries()) {
    const line = index + 1;
    const fence = /^\s*(```+|~~~+)/.exec(row)?.[1];
    if (code !== null) {
      if (fence?.startsWith(code)) code = null;
      continue;
    }
    if (fence) {
      [code, open] = [fence, null];
    } else if (/^\s*$|^\s*<!--.*-->\s*$|^ {4,}\S(?!.*[.]$)/.test(row) && !(open && /^ {4,}/.test(row))) {
      open = null;
    } else if (/^\s*\|/.test(row)) {
      open = null;
      if (/^[\s|:-]+$/.test(row)) continue;
      for (const cell of row
        .trim()
        .slice(1, -1)
        .split(/(?<!\\)\|/)) {
        if (cell.trim() !== '') blocks.push({ line, text: cell.trim() });
      }
    } else {
      const item = /^\s*(?:#+|[-*+]|\d+[.)]|>)\s+(.*)$/.exec(row);
      if (item || !open) {
        open = { line, text: item ? item[1]! : row.trim() };
        blocks.push(open);
        if (row.startsWith('#')) open = null;
      } else {
        open.text += `\n${row.trim()}`;
      }
    }
  }
  return blocks;
}

export function sentencesOf(markdown: string): Sentence[] {
  return blocksOf(markdown).flatMap(({ line, text }) => {
    const spans = text.match(SPAN) ?? [];
    let at = line;
    return PLAIN.reduce((so, [pattern, by]) => so.replaceAll(pattern, by), text.replaceAll(SPAN, CODE))
      .split(BORDER)
      .map((sentence) => {
        const plain = sentence.replaceAll(/\s+/g, ' ').trim();
        const written = plain.replaceAll(CODE, () => spans.shift() ?? CODE).replaceAll(/\s+/g, ' ');
        const found = { line: at, text: written, plain, words: wordsOf(plain) };
        at += sentence.split('\n').length - 1;
        return found;
      });
  });
}

/** The length that nine of ten do not exceed. Fragments of one to three words, as in tables, are left out. */
export function ninetieth(sentences: readonly Sentence[]): number {
  const lengths = sentences
    .map(({ words }) => words)
    .filter((words) => words > 3)
    .sort((a, b) => a - b);
  return lengths[Math.floor(lengths.length * 0.9)] ?? 0;
}
