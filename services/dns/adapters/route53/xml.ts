// The XML of Route 53, of which elements of one name never contain each other.

/** Content of the first element of the name; null for none. */
export function elementOf(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^]*?)</${name}>`).exec(xml);
  return found ? found[1]! : null;
}

/** Contents of all elements of the name. */
export function elementsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^]*?)</${name}>`, 'g'))].map(([, content]) => content!);
}

export function textOf(xml: string, name: string): string | null {
  const content = elementOf(xml, name);
  return content === null ? null : unescapeXml(content);
}

export function escapeXml(text: string): string {
  const names: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' };
  return text.replace(/[&<>"']/g, (char) => `&${names[char]};`);
}

export function unescapeXml(text: string): string {
  const chars: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
  return text.replace(/&(#x?[0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);/g, (_whole, name: string) => {
    if (!name.startsWith('#')) return chars[name]!;
    const code = name[1] === 'x' ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : '';
  });
}
