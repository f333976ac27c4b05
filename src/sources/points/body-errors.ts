/** First words of DuckDB's errors about what a file contains, as opposed to the file, the machine or the engine. */
const aboutContent = /^(?:Invalid Input|Conversion|Out of Range|Parser|Binder|Not implemented|Serialization) Error: /

/**
 * Throws an error again unless DuckDB refuses the content of a body. A lack of memory or disk, a cancel, a file that
 * cannot be read and a defect of the engine say nothing about the body: the provider would be blamed for it, and its
 * window would count as failed.
 */
export function requireBodyError(error: unknown): void {
  if (!(error instanceof Error && aboutContent.test(error.message))) throw error
}
