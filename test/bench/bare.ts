import { Agent, request } from 'undici'

/** Addresses, and how many of them are asked for at once. */
interface Asked {
  readonly urls: readonly string[]
  readonly concurrency: number
}

// Downloads what stdin names and does nothing else: the least that a fetch can take. Says how many bytes came.
const input: Buffer[] = []
for await (const chunk of process.stdin) input.push(chunk as Buffer)
const { urls, concurrency } = JSON.parse(Buffer.concat(input).toString()) as Asked
const dispatcher = new Agent({ connections: concurrency, pipelining: 1 })
const waiting = [...urls]
let bytes = 0
const worker = async (): Promise<void> => {
  for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
    const { body } = await request(url, { dispatcher })
    bytes += (await body.arrayBuffer()).byteLength
  }
}
await Promise.all(Array.from({ length: concurrency }, worker))
await dispatcher.close()
console.log(bytes)
