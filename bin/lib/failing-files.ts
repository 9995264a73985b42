// Which test files failed, from the lines in which ava's TAP output says so.

const TITLE_SEPARATOR = ' › ';

/**
 * The files that the failures (`not ok 12 - folder › name › title`, or one that names a file's path) belong to. ava leaves
 * out the folders that all files share, and the name of an only file. None when a failure belongs to no file.
 */
export function failingFiles(files: string[], failures: string[]): string[] {
  if (files.length === 1) return failures.length > 0 ? files : [];
  const failing = new Set<string>();
  for (const failure of failures) {
    const title = failure.split('\n', 1)[0]!.replace(/^not ok \d+ - /, '');
    const named = files.find((file) => title.includes(file)) ?? fileOfTitle(files, title);
    if (!named) return [];
    failing.add(named);
  }
  return [...failing];
}

function fileOfTitle(files: string[], title: string): string | undefined {
  let best: { file: string; length: number } | undefined;
  for (const file of files) {
    const segments = file.replace(/\.test\.ts$/, '').split('/');
    for (let from = 0; from < segments.length; from++) {
      const prefix = segments.slice(from).join(TITLE_SEPARATOR) + TITLE_SEPARATOR;
      if (!title.startsWith(prefix)) continue;
      if (!best || prefix.length > best.length) best = { file, length: prefix.length };
      break;
    }
  }
  return best?.file;
}
