import { PassThrough } from 'node:stream'
import { until } from './processes.ts'

/** A stream that remembers what was written to it. */
export class Screen extends PassThrough {
  #text = ''

  constructor() {
    super()
    this.on('data', (part: Buffer) => (this.#text += part.toString('utf8')))
  }

  get text(): string {
    return this.#text
  }

  /** Waits until the text is there; gives what came after `from`. */
  async until(text: string, from = 0): Promise<string> {
    const came = (): string => this.#text.slice(from)
    await until(() => came().includes(text), `"${text}"`).catch((error: unknown) => {
      throw new Error(`there was: ${came()}`, { cause: error })
    })
    return came()
  }
}
