/**
 * The operand of `like` that finds a text anywhere, with what `like` reads as a sign taken as it stands; without a text
 * it finds everything. Letters keep their case: who compares without it lowers both sides in the same place.
 */
export function searchPattern(text: string | undefined): string {
  return `%${(text ?? '').trim().replaceAll(/[\\%_]/g, '\\$&')}%`;
}
