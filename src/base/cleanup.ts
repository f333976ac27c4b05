/**
 * Runs work, then its cleanup in any case. If the work fails, its error is reported, even if the cleanup then fails,
 * too: the full disk or the lost engine that ended the work often also ends the cleanup, with words that explain less.
 */
export async function withCleanup<T>(work: () => Promise<T>, cleanUp: () => unknown): Promise<T> {
  let value: T
  try {
    value = await work()
  } catch (error) {
    await cleanUpAfterError(cleanUp)
    throw error
  }
  await cleanUp()
  return value
}

/** Cleans up after an error, which the caller throws again: it must not be replaced by an error of the cleanup. */
export async function cleanUpAfterError(cleanUp: () => unknown): Promise<void> {
  try {
    await cleanUp()
  } catch {
    // The first error is the one to report.
  }
}
