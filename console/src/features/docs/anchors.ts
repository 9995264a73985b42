/** Returns a function that names headings as GitHub does; a name that occurs again gets a number. */
export function headingAnchors(): (heading: string) => string {
  const counts = new Map<string, number>();
  return (heading) => {
    const name = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return count === 0 ? name : `${name}-${count}`;
  };
}

/** Id of a heading in the page; the prefix keeps it apart from ids of the frame. */
export const headingId = (anchor: string) => `docs-${anchor}`;
