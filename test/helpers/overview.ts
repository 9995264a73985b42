// The overview as somebody sees it who keeps looking: what it says, and when it begins and ends to say something.
import { eventually } from './eventually.ts';
import type { Api, Body } from './resources.ts';

/** The answer is 2 s old at most, so asking more often shows nothing new. */
const EVERY_MS = 200;

export class Overview {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Of one cluster, where one is named. */
  get(clusterId?: string): Promise<Body> {
    return this.#api.ok('GET', clusterId === undefined ? '/overview' : `/overview?clusterId=${clusterId}`);
  }

  /** The item as soon as the list has it. */
  shown(kind: string, test: (item: Body) => boolean = () => true): Promise<Body> {
    const find = async () => (await this.get()).attention.find((item: Body) => item.kind === kind && test(item));
    return eventually(find, { what: kind, everyMs: EVERY_MS });
  }

  async gone(kind: string): Promise<void> {
    const none = async () => (await this.get()).attention.every((item: Body) => item.kind !== kind);
    await eventually(none, { what: `no ${kind}`, everyMs: EVERY_MS });
  }
}
