// `npm run package:node`: the package from which machines become edge nodes, in the folder a console offers it from.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURES, type Architecture, makeNodePackage } from './lib/node-package/node-package.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { downloadsDir, root } from './lib/root.ts';

const HELP = `Usage: npm run package:node [-- OPTIONS]

Builds the package of an edge node (agent, Node, Caddy): one archive per processor, with checksums. A console with
SVC_DOWNLOADS_DIR=DIR offers it to the installer it serves as /install.sh. The same sources give the same archive.

  --out DIR          folder of downloads (default: SVC_DOWNLOADS_DIR, else data/downloads)
  --version VERSION  semantic version (default: the one in package.json)
  --arch LIST        amd64, arm64 or both, comma-separated (default: this machine's)
  --replace          replaces an existing archive of this version`;

const SEMVER = /^v?([0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?)$/;

function versionFrom(text: string | undefined): string {
  const version = text ?? (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;
  return SEMVER.exec(version)?.[1] ?? refuse(`--version: "${version}" is not a semantic version`);
}

function architecturesFrom(text: string | undefined): Architecture[] {
  const names = Object.keys(ARCHITECTURES) as Architecture[];
  const wanted = text?.split(',') ?? names.filter((name) => ARCHITECTURES[name] === process.arch);
  const known = wanted.map((name) => names.find((each) => each === name) ?? refuse(`--arch: "${name}" does not exist`));
  return known.length > 0 ? known : refuse(`no packages exist for ${process.arch}; choose one with --arch`);
}

function refuse(problem: string): never {
  throw new Refusal(problem);
}

try {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      version: { type: 'string' },
      arch: { type: 'string' },
      replace: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) say(HELP);
  else {
    const out = resolve(root, values.out ?? (process.env.SVC_DOWNLOADS_DIR || downloadsDir));
    const version = versionFrom(values.version);
    const architectures = architecturesFrom(values.arch);
    const made = await makeNodePackage({ out, version, architectures, replace: values.replace });
    for (const { file, sha256 } of made) console.log(`${sha256}  ${file}`);
    say(`Version ${version} is the latest in ${out}.`);
  }
} catch (error) {
  report(error);
}
