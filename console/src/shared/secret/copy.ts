/** Copies a text; false where the browser has no clipboard for this address (http on a name of the network). */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
