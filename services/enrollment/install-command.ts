/** The line that makes a machine a node of a token's cluster: it runs the installer this console serves. */
export function installCommand(options: {
  consoleUrl: string;
  serverUrl: string;
  caSha256: string;
  token: string;
}): string {
  const { consoleUrl, serverUrl, caSha256, token } = options;
  // The token in the environment: arguments are visible to every user of the machine.
  return (
    `curl -fsSL ${word(`${consoleUrl}/install.sh`)} | ` +
    `SVC_TOKEN=${word(token)} sh -s -- --server ${word(serverUrl)} --ca-sha256 ${word(caSha256)}`
  );
}

/** One word to every shell; brackets of an IPv6 address would be a pattern to some. */
function word(text: string): string {
  return /^[A-Za-z0-9_.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
