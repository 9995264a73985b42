// The elements of a document, with its links as those of the Web UI.
import { type FunctionalComponent, h, type VNodeArrayChildren } from 'vue';
import { RouterLink } from 'vue-router';
import type { DocsElement, DocsNode } from './document.ts';
import { linkTarget } from './links.ts';

function draw(page: string, node: DocsNode): VNodeArrayChildren {
  if (typeof node === 'string') return [node];
  const children = node.children.flatMap((child) => draw(page, child));
  return node.tag === 'a' ? link(page, node, children) : [h(node.tag, node.attributes, children)];
}

function link(page: string, { attributes }: DocsElement, children: VNodeArrayChildren): VNodeArrayChildren {
  const target = linkTarget(page, String(attributes.href));
  if (target.kind === 'page') return [h(RouterLink, { to: target.to }, () => children)];
  if (target.kind === 'web') return [h('a', { href: target.href }, children)];
  return [...children, ' (', h('code', target.path), ')'];
}

export const DocsText: FunctionalComponent<{ page: string; nodes: readonly DocsNode[] }> = ({ page, nodes }) =>
  nodes.flatMap((node) => draw(page, node));
