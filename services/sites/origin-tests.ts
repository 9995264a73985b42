// Origins that operators test from the console or from a node: the address policy of nodes holds here too, and each user has
// a budget, so that neither is a scanner.
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  NODE_TEST_SECONDS,
  ORIGIN_TEST_SECONDS,
  ORIGIN_TESTS_A_MINUTE,
  type OriginTest,
  type originTest,
} from '../../contract/resources/origin-test.ts';
import { normaliseHostHeader } from '../../contract/scalars/host-header.ts';
import { assertTakesTasks, runNodeTask } from '../../mixins/node-task.ts';
import { readOriginAllowList } from '../../models/sites/origin-allow-list.ts';
import { testOrigin } from '../../proto/origin-test/test-origin.ts';
import type { Actor, Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type NodeOriginTest, originTestTask } from './origin-test.task.ts';
import { parseOrigin } from './site-content.ts';

const MINUTE_MS = 60_000;

export class OriginTests {
  readonly #runtime: Runtime;
  /** When each user began the tests of the last minute. */
  readonly #begun = new Map<string, number[]>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Throws the contract's errors. */
  async run(input: Input<typeof originTest.tryOrigin>, call: Call): Promise<OriginTest> {
    const asked = this.#read(input, call, ORIGIN_TEST_SECONDS);
    return testOrigin({ ...asked, allow: await readOriginAllowList(this.#runtime.pools.api) });
  }

  /** The node applies its own address policy. Throws the contract's errors. */
  async runFromNode(input: Input<typeof originTest.tryOriginFromNode>, call: Call): Promise<OriginTest> {
    // A node that cannot costs nothing of the user's budget.
    await assertTakesTasks(this.#runtime, input.id);
    return runNodeTask(this.#runtime, originTestTask, input.id, this.#read(input, call, NODE_TEST_SECONDS));
  }

  #read(input: Input<typeof originTest.tryOrigin>, { actor }: Call, seconds: number): NodeOriginTest {
    const origin = parseOrigin(input.origin, '/origin');
    const host = normaliseHostHeader(input.host ?? '') ?? badField('/host', 'hostName');
    this.#take(actor);
    const { path = '/', tlsVerify = true, protocol = 'http1' } = input;
    return { origin, host, path, tlsVerify, protocol, timeoutMs: seconds * 1000 };
  }

  #take({ type, id }: Actor): void {
    const now = performance.now();
    for (const [user, times] of this.#begun) if (times.at(-1)! <= now - MINUTE_MS) this.#begun.delete(user);
    const user = `${type} ${id}`;
    const recent = (this.#begun.get(user) ?? []).filter((at) => at > now - MINUTE_MS);
    if (recent.length >= ORIGIN_TESTS_A_MINUTE) {
      const retryAfterSeconds = Math.max(1, Math.ceil((recent[0]! + MINUTE_MS - now) / 1000));
      fail('ORIGIN_TEST_LIMIT', { limit: ORIGIN_TESTS_A_MINUTE, retryAfterSeconds });
    }
    this.#begun.set(user, [...recent, now]);
  }
}
