import { SmallWorld } from './registry-world.ts'

/** A provider of a few records that a test can change, break and refuse at will. */
export class SmallRegistry {
  readonly world = new SmallWorld()
  readonly #tables: readonly string[]
  /** What to answer a path with instead, while it is set. */
  readonly broken = new Map<string, () => Response>()
  epoch = 0
  /** Whether lists pay no heed to filters. */
  heedless = false
  /** How this provider writes a cursor, and what one that it is sent back means. */
  spell = (cursor: string): string => cursor
  read = (told: string): string => told
  readonly asked: string[] = []

  /** `more` are further resources, plural to singular. */
  constructor(more: Readonly<Record<string, string>> = {}) {
    Object.assign(this.world.singular, more)
    this.#tables = ['issuers', 'assets', 'products', 'deployments', 'venues', 'derivatives', ...Object.keys(more)]
    for (let n = 0; n < 30; n++) this.world.put('issuers', `i${n}`, { name: `Issuer ${n}`, custodian: null })
    for (let n = 0; n < 20; n++) this.world.put('products', `p${n}`, { name: `Product ${n}`, issuer_id: `i${n}` })
    for (let n = 0; n < 40; n++)
      this.world.put('deployments', `d${n}`, {
        product_id: `p${n % 20}`,
        status: 'active',
        verification_status: n % 8 === 0 ? 'unverified' : 'verified',
        provenance: [{ kind: 'explorer', n }],
      })
  }

  answer = (request: Request): Response => {
    const url = new URL(request.url)
    const path = url.pathname.replace('/registry/v1', '')
    this.asked.push(path)
    const broken = this.broken.get(path)
    if (broken) return broken()
    if (path === '/snapshot') return Response.json(this.#whole())
    if (path === '/changes/head') return Response.json({ cursor: this.#cursor(this.world.log.length) })
    if (path === '/changes') return this.#changes(url)
    const [table = '', id] = path.slice(1).split('/')
    if (id === undefined) return this.#list(table, request)
    const data = this.world.record(`${table} ${id}`)
    return data ? Response.json({ data, as_of: '2026-06-01T12:00:00Z' }) : refused(404, 'not_found')()
  }

  #cursor(seq: number): string {
    return this.spell(`e${this.epoch}.${seq}`)
  }

  #table(table: string): unknown[] {
    const keys = [...this.world.rows.keys()].filter((key) => key.startsWith(`${table} `))
    return keys.toSorted().map((key) => this.world.record(key))
  }

  #whole(): Record<string, unknown> {
    const arrays = Object.fromEntries(this.#tables.map((table) => [table, this.#table(table)]))
    return { ...arrays, cursor: this.#cursor(this.world.log.length), as_of: '2026-06-01T12:00:00Z' }
  }

  #changes(url: URL): Response {
    const [, epoch, seq] = /^e(\d+)\.(\d+)$/.exec(this.read(url.searchParams.get('since') ?? '')) ?? []
    if (Number(epoch) !== this.epoch || Number(seq) > this.world.log.length)
      return Response.json({ error: { code: 'invalid_cursor', message: 'old' } }, { status: 400 })
    const until = Math.min(Number(seq) + 50, this.world.log.length)
    const data = this.world.events(Number(seq), until).map(({ text }) => JSON.parse(text) as unknown)
    const has_more = until < this.world.log.length
    return Response.json({ data, next_cursor: this.#cursor(until), has_more, as_of: '2026-06-01T12:00:00Z' })
  }

  #list(table: string, request: Request): Response {
    const rows = this.#table(table) as Record<string, unknown>[]
    const query = this.heedless ? [] : [...new URL(request.url).searchParams]
    const wanted = query.filter(([name]) => !['limit', 'cursor'].includes(name))
    const own = rows.filter((row) => wanted.every(([name, value]) => (row[name] ?? row[`${name}_id`]) === value))
    const data = table === 'deployments' ? own.filter((row) => row['verification_status'] === 'verified') : own
    const etag = `"${table}-${JSON.stringify(data).length}"`
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers: { etag } })
    return Response.json(
      { data, next_cursor: null, has_more: false, as_of: '2026-06-01T12:00:00Z' },
      { headers: { etag } },
    )
  }
}

/** A refusal as the registry words it. */
export function refused(status: number, code: string, headers: Record<string, string> = {}): () => Response {
  return () => Response.json({ error: { code, message: code }, request_id: 'r' }, { status, headers })
}
