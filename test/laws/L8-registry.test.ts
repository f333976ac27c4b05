import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { everyForm } from '../helpers/spellings.ts'
import { filesIn, keyTraces } from '../helpers/key-search.ts'
import { metricsKey, registryKey, withRegistryRig } from '../helpers/registry-rig.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'

const now = Date.UTC(2026, 5, 1, 12) / 1000
const keys = [registryKey, metricsKey]
const forms = keys.flatMap((key) => Object.entries(everyForm(key)))
const echo = forms.map(([name, form]) => `${name} ${form}`).join(' | ')
/** Stands in records and is replaced by every form of both keys on the way out. */
const place = 'HERE-STANDS-WHAT-IS-ECHOED'

/** The answers of the small provider with the keys in texts of bodies, in headers and in words. */
function echoing(small: SmallRegistry, headers: Readonly<Record<string, string>>) {
  return (request: Request): Response => {
    const answer = small.answer(request)
    const stream = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, out) => {
        const bytes = Buffer.from(Buffer.from(chunk).toString().replaceAll(place, echo))
        for (let at = 0; at < bytes.length; at += 1021) out.enqueue(bytes.subarray(at, at + 1021))
      },
    })
    const all = { ...Object.fromEntries(answer.headers), ...headers }
    return new Response(answer.body?.pipeThrough(stream) ?? null, { status: answer.status, headers: all })
  }
}

test('a registry job writes no byte of a key', async () => {
  const small = new SmallRegistry()
  for (let n = 0; n < 5; n++)
    small.world.put('issuers', `i${n}`, { name: `Issuer ${place}`, custodian: null, [`odd ${place}`]: [place] })
  const headers = {
    etag: `"${metricsKey}"`,
    'x-request-id': registryKey,
    'x-ratelimit-remaining': `99;${registryKey}`,
    'x-quota-daily-limit': metricsKey,
  }
  await withRegistryRig(
    now,
    async (rig) => {
      const first = await rig.sync()
      expect(first.opened).toBeGreaterThan(50)
      small.world.put('issuers', 'i9', { name: `told ${place}`, custodian: place })
      expect(await rig.sync()).toMatchObject({ updated: 1, words: null })
      small.broken.set('/changes', () =>
        Response.json({ error: { code: 'internal', message: place } }, { status: 400 }),
      )
      expect((await rig.sync()).stopped_by).toBe('failed')
      small.broken.set('/changes', () => new Response(`<p>${place}</p>`))
      expect((await rig.sync()).stopped_by).toBe('undecodable')
      expect(await keyTraces(rig.root, keys)).toEqual([])
      for (const kind of [/^registry\/raw\//, /^registry\/history\.issuers\//, /^registry\/events/, /^quarantine\//])
        expect(filesIn(rig.root)).toContainEqual(expect.stringMatching(kind))
    },
    { instead: echoing(small, headers) },
  )
})

test('a raw body without a key is stored byte for byte', async () => {
  const small = new SmallRegistry()
  await withRegistryRig(
    now,
    async (rig) => {
      await rig.sync()
      const raw = filesIn(rig.root).find((path) => path.startsWith('registry/raw/snapshot/'))
      expect(raw).toBeDefined()
      const sent = await small.answer(new Request('http://x/registry/v1/snapshot')).text()
      const kept = zstdDecompressSync(readFileSync(`${rig.root}/${raw}`))
      const digest = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
      expect(digest(kept)).toBe(digest(sent))
    },
    { instead: small.answer },
  )
})
