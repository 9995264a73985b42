#!/usr/bin/env node
// Entry of the edge agent: finds the command and turns mistakes into exit code 2, failures into 1.
import { createLog, redact } from '../kit/log.ts';
import { describeOptions, type OptionSpec, parseOptions, UsageError } from '../kit/options.ts';
import { ENROLL_OPTIONS, Options, RUN_OPTIONS, STATUS_OPTIONS, SUPERVISE_OPTIONS } from './options.ts';

interface Command {
  summary: string;
  details: string;
  options: readonly OptionSpec[];
  load: () => Promise<(options: Options) => Promise<number>>;
}

const COMMANDS: Record<string, Command> = {
  enroll: {
    summary: 'exchange a one-time token for an identity of this node',
    details: 'The token is read from --token, SVC_TOKEN or standard input.',
    options: ENROLL_OPTIONS,
    load: async () => (await import('./commands/enroll.ts')).enrollCommand,
  },
  supervise: {
    summary: 'run the edge server and the agent, and restart them after a failure',
    details: 'Stops both on SIGTERM or SIGINT; the edge server gets 10 s to finish requests.',
    options: SUPERVISE_OPTIONS,
    load: async () => (await import('./commands/supervise.ts')).superviseCommand,
  },
  run: {
    summary: 'run only the agent, next to an edge server that is already running',
    details: 'Waits for an identity when the node is not enrolled yet.',
    options: RUN_OPTIONS,
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  status: {
    summary: 'show the state of the agent on this machine',
    details: 'Exit code: 0 connected and data plane healthy, 3 otherwise, 1 no agent.',
    options: STATUS_OPTIONS,
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
  version: {
    summary: 'print the version',
    details: '',
    options: [],
    load: async () => async () => {
      const { AGENT_VERSION } = await import('./version.ts');
      process.stdout.write(`${AGENT_VERSION}\n`);
      return 0;
    },
  },
};

function usage(): string {
  const names = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`);
  return `Usage: svc-edge COMMAND [OPTIONS]\n\n${names.join('\n')}\n\nsvc-edge COMMAND --help describes a command.\n`;
}

function help(name: string, { summary, details, options }: Command): string {
  const parts = [`Usage: svc-edge ${name}${options.length > 0 ? ' [OPTIONS]' : ''}`, `Command ${name}: ${summary}.`];
  if (details !== '') parts.push(details);
  if (options.length > 0)
    parts.push(
      `Options (the environment variable in brackets applies if the option is absent):\n${describeOptions(options)}`,
    );
  return `${parts.join('\n\n')}\n`;
}

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    (name === undefined ? process.stderr : process.stdout).write(usage());
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name]! : undefined;
  if (!command) throw new UsageError(`the command "${name}" does not exist`);
  const parsed = parseOptions(command.options, rest, process.env);
  if (parsed.help) {
    process.stdout.write(help(name, command));
    return 0;
  }
  const run = await command.load();
  return run(new Options(parsed.values));
}

process.title = `svc-edge ${process.argv[2] ?? ''}`.trim();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`svc-edge: ${redact(error.message)}\nRun svc-edge --help for commands and options.\n`);
    process.exitCode = 2;
  } else {
    createLog().error('command failed', { error });
    process.exitCode = 1;
  }
}
