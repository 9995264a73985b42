// What a part of a pack excludes, in words.
import type { PackPart } from '@contract/waf-packs.ts';
import { formatList } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { whereText } from './meaning.ts';

export function packPartText({ rules, paths, pathPrefix, part, names }: PackPart): string {
  const where = formatList(paths.map((path) => whereText({ path, pathPrefix })));
  const words = { where, rules: formatList(rules.map(String)), names: formatList([...names]) };
  return i18n.global.t(`waf.packs.part.${part}`, words);
}
