import { type DocsDocument, parseDocument } from './document.ts';

/** Each page is a file of its own in the build. */
const FILES = import.meta.glob<string>(['../../../../docs/*.md', '../../../../docs/reference/*.md'], {
  query: '?raw',
  import: 'default',
});

/** Reads a page by its file below docs/ without `.md`; null if there is none. */
export async function readPage(page: string): Promise<DocsDocument | null> {
  const file = FILES[`../../../../docs/${page}.md`];
  return file ? parseDocument(await file()) : null;
}
