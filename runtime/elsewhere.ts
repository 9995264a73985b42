// Services that this process does not run, and whether any other process does.
import type { ServiceBroker } from 'moleculer';
import { Gauge } from 'prom-client';
import type { Runtime } from './runtime.ts';

interface KnownNode {
  local: boolean;
  available: boolean;
  services?: readonly { name: string }[];
}

export class Elsewhere {
  readonly #names: readonly string[];
  #broker: ServiceBroker | null = null;

  constructor({ metrics }: Runtime, names: readonly string[]) {
    this.#names = names;
    const missing = () => this.missing();
    new Gauge({
      name: 'svc_missing_services',
      help: 'Services that no process runs, as far as this process knows.',
      labelNames: ['service'],
      registers: [metrics],
      collect() {
        this.reset();
        for (const service of missing()) this.set({ service }, 1);
      },
    });
  }

  /** From now on it looks at the processes that the broker knows. */
  watch(broker: ServiceBroker): void {
    this.#broker = broker;
  }

  /** Names of the services that no process runs now. */
  missing(): string[] {
    const registry = this.#broker?.registry as unknown as { nodes: { toArray(): KnownNode[] } } | undefined;
    const others = registry?.nodes.toArray().filter(({ local, available }) => !local && available) ?? [];
    const running = new Set(others.flatMap(({ services }) => services?.map(({ name }) => name) ?? []));
    return this.#names.filter((name) => !running.has(name));
  }
}
