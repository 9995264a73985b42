// A document as a tree of elements. It never becomes HTML text, so nothing in it can run, and the content security policy
// holds.
import MarkdownIt, { type Token } from 'markdown-it';
import { headingAnchors, headingId } from './anchors.ts';

export interface DocsElement {
  tag: string;
  attributes: Record<string, string | number>;
  children: DocsNode[];
}
export type DocsNode = string | DocsElement;

export interface DocsDocument {
  /** Its heading of the first level, which `body` does not repeat. */
  title: string;
  /** Names of the headings, which links have after `#`. */
  anchors: string[];
  body: DocsNode[];
}

const markdown = new MarkdownIt({ html: false }).disable('image');

/** Comments are for tests that read the documents. Blanks in front: inside a list. */
const COMMENTS = /^ *<!--[^\n]*-->\n/gm;

export function parseDocument(source: string): DocsDocument {
  const anchorOf = headingAnchors();
  const tokens = markdown.parse(source.replaceAll(COMMENTS, ''), {});
  const anchors = new Map<Token, string>();
  let title = '';
  for (const [index, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue;
    const text = plainText(tokens[index + 1]!);
    if (token.tag === 'h1') title = text;
    anchors.set(token, anchorOf(text));
  }
  const body = treeOf(tokens, anchors).filter((node) => typeof node === 'string' || node.tag !== 'h1');
  return { title, anchors: [...anchors.values()], body };
}

const plainText = ({ children }: Token) =>
  (children ?? []).map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('');

function element(tag: string, children: DocsNode[] = [], attributes: DocsElement['attributes'] = {}): DocsElement {
  return { tag, attributes, children };
}

/** Scrolls sideways by itself, also by keyboard. */
const wide = (inner: DocsElement) => element('div', [inner], { class: 'docs__wide', tabindex: 0 });

function treeOf(tokens: readonly Token[], anchors: ReadonlyMap<Token, string>): DocsNode[] {
  const root = element('root');
  const open = [root];
  for (const token of tokens) {
    const inside = open.at(-1)!.children;
    if (token.hidden) continue;
    if (token.nesting === 1) {
      const opened = openedBy(token, anchors);
      inside.push(opened.tag === 'table' ? wide(opened) : opened);
      open.push(opened);
    } else if (token.nesting === -1) open.pop();
    else inside.push(...leaf(token, anchors));
  }
  return root.children;
}

function openedBy(token: Token, anchors: ReadonlyMap<Token, string>): DocsElement {
  const anchor = anchors.get(token);
  if (anchor !== undefined) return element(token.tag, [], { id: headingId(anchor), tabindex: -1 });
  const [href, start] = [token.attrGet('href'), token.attrGet('start')];
  return element(token.tag, [], { ...(href === null ? {} : { href }), ...(start === null ? {} : { start }) });
}

function leaf(token: Token, anchors: ReadonlyMap<Token, string>): DocsNode[] {
  switch (token.type) {
    case 'inline':
      return treeOf(token.children ?? [], anchors);
    case 'text':
      return [token.content];
    case 'softbreak':
      return ['\n'];
    case 'code_inline':
      return [element('code', [token.content])];
    case 'fence':
    case 'code_block':
      return [wide(element('pre', [element('code', [token.content])]))];
    case 'hardbreak':
    case 'hr':
      return [element(token.tag)];
    default:
      throw new Error(`a document contains ${token.type}`);
  }
}
