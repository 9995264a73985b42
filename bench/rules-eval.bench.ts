// Conditions of rules: what the edge needs for one, beside the languages expr and CEL in the same rounds.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { caddySources } from '../bin/lib/caddy.ts';
import { checkCondition } from '../contract/expression/expression.ts';
import { expressionMessage } from '../models/rules/expression-message.ts';
import { ExpressionSchema } from '../proto/gen/svc/config/v1/expression_pb.js';
import { medianInterval, round2 } from './lib/stats.ts';
import { CLASSES, REQUEST, type Rule, SIX, SIXTY_FOUR } from './rules-eval/classes.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'conditions of rules beside expr and cel-go (Go benchmark)';

const AIM_SIX_NS = 60;
const AIM_SIXTY_FOUR_NS = 4000;
const LANGUAGES = ['edge', 'expr', 'cel'] as const;
type Language = (typeof LANGUAGES)[number];

interface Sample {
  cpu: number;
  wall: number;
  allocs: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 11;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-rules-eval-'));
  const samples = new Map<string, Sample[]>();
  try {
    const work = path.join(folder, 'work.json');
    writeFileSync(
      work,
      JSON.stringify({
        request: REQUEST,
        classes: CLASSES.map(({ name, rules }) => ({ name, rules: rules.map(compiled) })),
      }),
    );
    const packages = [path.join(caddySources, 'expr'), path.join(import.meta.dirname, 'rules-eval')];
    const programs = packages.map((cwd, index) => {
      log(`building the benchmark of ${index === 0 ? 'the edge' : 'the others'}`);
      const program = path.join(folder, `${index}.test`);
      const env = { ...process.env, CGO_ENABLED: '0' };
      execFileSync('go', ['test', '-trimpath', '-c', '-o', program], { cwd, env, timeout: 600_000 });
      return program;
    });
    for (let round = 0; round < rounds; round++) {
      for (const program of round % 2 === 0 ? programs : programs.toReversed()) measure(program, work, quick, samples);
    }
    log(`${rounds} rounds`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const of = (language: Language, name: string): Sample[] => {
    const found = samples.get(`${language}/${name.replaceAll(' ', '_')}`);
    if (found?.length !== rounds) throw new Error(`${found?.length ?? 0} figures of ${language}/${name}`);
    return found;
  };
  // A shared machine takes the core away in between: processor time is judged, the clock is shown.
  const cpu = (language: Language, name: string) => medianInterval(of(language, name).map((each) => each.cpu));
  const allocs = (language: Language, name: string) => Math.max(...of(language, name).map((each) => each.allocs));
  const figures = Object.fromEntries(
    CLASSES.map(({ name }) => [
      name,
      Object.fromEntries(
        LANGUAGES.map((language) => {
          const { low, median, high } = cpu(language, name);
          const wall = medianInterval(of(language, name).map((each) => each.wall)).median;
          return [
            language,
            { ns: [low, median, high].map(round2), wallNs: round2(wall), allocs: allocs(language, name) },
          ];
        }),
      ),
    ]),
  );
  const slower = CLASSES.filter(({ name }) => {
    const edge = of('edge', name);
    return (['expr', 'cel'] as const).some((language) => {
      const others = of(language, name);
      return medianInterval(edge.map((each, round) => each.cpu / others[round]!.cpu)).high >= 1;
    });
  });
  return {
    figures,
    aims: [
      {
        aim: `${SIX}: ≤ ${AIM_SIX_NS} ns of processor time (upper end of the interval)`,
        reached: cpu('edge', SIX).high <= AIM_SIX_NS,
      },
      { aim: `${SIX}: no allocation`, reached: allocs('edge', SIX) === 0 },
      {
        aim: `${SIXTY_FOUR}: ≤ ${AIM_SIXTY_FOUR_NS / 1000} µs of processor time (upper end of the interval)`,
        reached: cpu('edge', SIXTY_FOUR).high <= AIM_SIXTY_FOUR_NS,
      },
      { aim: `${SIXTY_FOUR}: no allocation`, reached: allocs('edge', SIXTY_FOUR) === 0 },
    ],
    notes: slower.map(({ name }) => `${name}: no less processor time than one of the others`),
    programs: { go: ['go', 'version'] },
  };
}

/** A rule with its tree as the edge gets it. */
function compiled({ edge, ...others }: Rule): object {
  const checked = checkCondition(edge, { phase: 'waf-custom', lists: new Set() });
  if (!checked.valid) throw new Error(`${edge}: ${JSON.stringify(checked)}`);
  const message = expressionMessage(checked.tree, (name) => name);
  return { ...others, tree: Buffer.from(toBinary(ExpressionSchema, message)).toString('base64') };
}

/** Runs a program once and adds its figures. */
function measure(program: string, work: string, quick: boolean, samples: Map<string, Sample[]>): void {
  const words = ['-test.run', '^$', '-test.bench', '^BenchmarkRules$', '-test.cpu', '1'];
  words.push('-test.benchtime', quick ? '20ms' : '200ms');
  const env = { ...process.env, RULES_EVAL_WORK: work };
  const output = execFileSync(program, words, { encoding: 'utf8', env, timeout: 300_000 });
  for (const [, name, line] of output.matchAll(/^BenchmarkRules\/(\S+)\s+\d+\s+(.*)$/gm)) {
    const figure = (unit: string) => Number(new RegExp(`([\\d.]+) ${unit}`).exec(line!)?.[1]);
    const sample = { cpu: figure('cpu-ns/op'), wall: figure('ns/op'), allocs: figure('allocs/op') };
    if (Object.values(sample).some(Number.isNaN)) throw new Error(`no figures in:\n${line}`);
    samples.set(name!, [...(samples.get(name!) ?? []), sample]);
  }
}
