// What child processes see of our environment: everything but secrets.
const SECRETS = ['SVC_TOKEN'];

export function childEnvironment(extra: Record<string, string> = {}): Record<string, string | undefined> {
  const environment: Record<string, string | undefined> = { ...process.env, ...extra };
  for (const name of SECRETS) delete environment[name];
  return environment;
}
