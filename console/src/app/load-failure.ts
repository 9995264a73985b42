// Files of the Web UI that do not load leave no blank page: it loads anew, once, unless input would be lost. After that it says
// what happened, and Retry loads it again. A browser ends all requests when the network of its machine changes.
import { ref } from 'vue';

/** Files did not load, because the console was upgraded or for another reason; null: all did. */
export const loadFailure = ref<'upgraded' | 'failed' | null>(null);

const PATIENCE_MS = 5000;
const RELOADED = 'svc.reloaded';
/** When a page was loaded again by itself, as boot.js has it, too. */
const RETRIED = 'svc.retried';
const RETRY_MS = 60_000;

/** Where the person was going; null: nowhere. */
let target: string | null = null;
let checking = false;

/** `path`: the page that did not open. */
export function noteLoadFailure(path?: string): void {
  target = path ?? target;
  if (!checking) void check();
}

/** A page opened: what another one lacked does not matter any more. */
export function noteLoaded(): void {
  target = null;
  if (loadFailure.value === 'failed') loadFailure.value = null;
}

/** Loads the page again. While the console does not respond, the browser would only show an error of its own. */
export async function loadAgain(): Promise<void> {
  if ((await servedBuild()) !== null) go();
}

async function check(): Promise<void> {
  checking = true;
  const served = await servedBuild();
  checking = false;
  const upgraded = served === 'another';
  if (target !== null && !hasInput() && (upgraded ? isFirstReload() : served === 'own' && isFirstRetry())) {
    go();
    return;
  }
  loadFailure.value = upgraded ? 'upgraded' : 'failed';
}

/** Notes a reload for this upgrade; false: there was one. */
function isFirstReload(): boolean {
  if (sessionStorage.getItem(RELOADED) === ownBuild()) return false;
  sessionStorage.setItem(RELOADED, ownBuild());
  return true;
}

/** Notes a reload for another reason; false: there was one within a minute. */
function isFirstRetry(): boolean {
  if (Date.now() - Number(sessionStorage.getItem(RETRIED)) < RETRY_MS) return false;
  sessionStorage.setItem(RETRIED, String(Date.now()));
  return true;
}

function go(): void {
  const { pathname, search, hash } = window.location;
  if (target === null || target === pathname + search + hash) window.location.reload();
  else window.location.assign(target);
}

/** The script that a build begins with; its name changes with every build. */
function ownBuild(): string {
  return document.querySelector('script[type=module][src]')?.getAttribute('src') ?? '';
}

/** Null: the console does not respond. */
async function servedBuild(): Promise<'own' | 'another' | null> {
  try {
    const response = await fetch('/', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) return null;
    return (await response.text()).includes(ownBuild()) ? 'own' : 'another';
  } catch {
    return null;
  }
}

/** Forms with input answer as they do when the tab is closed. */
function hasInput(): boolean {
  return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));
}
