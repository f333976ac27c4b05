/** One JSON document on stdout; whole numbers beyond 2^53 are texts. */
export function json(value: unknown): string {
  const plain = (_: string, held: unknown): unknown =>
    typeof held !== 'bigint' ? held : Number.isSafeInteger(Number(held)) ? Number(held) : String(held)
  return `${JSON.stringify(value, plain, 2)}\n`
}
