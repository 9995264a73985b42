// The one form in which paths meet rules, as the edge has it (agents/caddy/exchange/path.go): dot segments resolved,
// repeated slashes made one, a slash in front. A slash at the end stays, and a dot segment at the end leaves one.

/** The canonical form of a decoded path. */
export function canonicalPath(decoded: string): string {
  // Most paths are.
  if (decoded.startsWith('/') && !decoded.includes('//') && !decoded.includes('/.')) return decoded;
  const segments: string[] = [];
  for (const segment of decoded.split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  const path = `/${segments.join('/')}`;
  return path !== '/' && /\/\.{0,2}$/.test(decoded) ? `${path}/` : path;
}
