/** Creating manual bans in groups came as functions only, which are in functions/ now. */
export async function up(): Promise<void> {
  // Nothing is left to do.
}
